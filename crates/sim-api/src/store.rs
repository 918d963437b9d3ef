//! The storage: objects by collection, and the history of changes, each with its resource version.
//!
//! Versions are consecutive, so the position of a version in the history can be computed.
//! Compaction removes the oldest part; requests for it get 410 Gone.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;
use tokio::time::Instant;

/// Namespace (empty for none) and name.
pub(crate) type Key = (String, String);

/// Objects of one collection.
pub(crate) type Objects = BTreeMap<Key, Arc<Value>>;

/// One change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) version: u64,
    /// When it was made.
    at: Instant,
    pub(crate) storage: &'static str,
    pub(crate) key: Key,
    /// The object before; `None` if it was created.
    pub(crate) old: Option<Arc<Value>>,
    /// The object after. For a removal, its last state with the removal's version.
    pub(crate) new: Arc<Value>,
    pub(crate) removed: bool,
}

/// The version is older than the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest available version.
    pub(crate) oldest: u64,
}

/// All objects and the recent history.
#[derive(Debug)]
pub(crate) struct Store {
    collections: BTreeMap<&'static str, Objects>,
    history: VecDeque<Change>,
    version: u64,
    /// Maximum number of changes in the history.
    remembered: usize,
}

/// The version before the first change.
const FIRST_VERSION: u64 = 100;

impl Store {
    pub(crate) fn new(remembered: usize) -> Self {
        Self {
            collections: BTreeMap::new(),
            history: VecDeque::new(),
            version: FIRST_VERSION,
            remembered,
        }
    }

    /// The version of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.collections.get(storage)?.get(&key)
    }

    /// All objects of a collection, or those of one namespace.
    pub(crate) fn list(&self, storage: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        self.objects(storage)
            .filter(|((found, _), _)| namespace.is_none_or(|namespace| namespace == found))
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    fn objects(&self, storage: &str) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.collections.get(storage).into_iter().flatten()
    }

    /// Whether a namespace has no objects.
    pub(crate) fn is_namespace_empty(&self, namespace: &str) -> bool {
        self.collections
            .values()
            .all(|objects| objects.keys().all(|(found, _)| found != namespace))
    }

    /// The current collection.
    pub(crate) fn collection(&self, storage: &str) -> Objects {
        self.collections.get(storage).cloned().unwrap_or_default()
    }

    /// A collection at a version.
    pub(crate) fn at(&self, storage: &str, version: u64) -> Result<Objects, Compacted> {
        let mut objects = self.collection(storage);
        for change in self.since(version)?.rev() {
            undo(change, storage, &mut objects);
        }
        Ok(objects)
    }

    /// A collection at a time, as far as the history reaches.
    pub(crate) fn collection_then(&self, storage: &str, time: Instant) -> Objects {
        let mut objects = self.collection(storage);
        for change in self.after(time) {
            undo(change, storage, &mut objects);
        }
        objects
    }

    /// An object at a time, as far as the history reaches.
    pub(crate) fn get_then(
        &self,
        storage: &str,
        (namespace, name): (&str, &str),
        time: Instant,
    ) -> Option<&Arc<Value>> {
        let is_it = |change: &&Change| {
            change.storage == storage && change.key.0 == namespace && change.key.1 == name
        };
        match self.after(time).filter(is_it).last() {
            Some(change) => change.old.as_ref(),
            None => self.get(storage, namespace, name),
        }
    }

    /// The changes after a time, newest first.
    fn after(&self, time: Instant) -> impl Iterator<Item = &Change> {
        let changes = self.history.iter().rev();
        changes.take_while(move |change| change.at > time)
    }

    /// The changes after a version.
    pub(crate) fn since(
        &self,
        version: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Change>, Compacted> {
        let behind = self.version.saturating_sub(version);
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        let skipped = self.history.len().checked_sub(behind).ok_or(Compacted {
            oldest: self.oldest(),
        })?;
        Ok(self.history.range(skipped..))
    }

    /// The oldest available version.
    fn oldest(&self) -> u64 {
        self.version - self.history.len() as u64
    }

    /// Stores an object under its name with a new version.
    pub(crate) fn put(&mut self, storage: &'static str, mut object: Value) -> Arc<Value> {
        let version = self.next_version();
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let key = key(&object);
        let new = Arc::new(object);
        let objects = self.collections.entry(storage).or_default();
        let old = objects.insert(key.clone(), Arc::clone(&new));
        self.remember(Change {
            version,
            at: Instant::now(),
            storage,
            key,
            old,
            new: Arc::clone(&new),
            removed: false,
        });
        new
    }

    /// Removes an object and returns its last state.
    pub(crate) fn remove(
        &mut self,
        storage: &'static str,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        let key = (namespace.to_owned(), name.to_owned());
        let old = self.collections.get_mut(storage)?.remove(&key)?;
        let version = self.next_version();
        let mut last = Value::clone(&old);
        last["metadata"]["resourceVersion"] = version.to_string().into();
        let new = Arc::new(last);
        self.remember(Change {
            version,
            at: Instant::now(),
            storage,
            key,
            old: Some(old),
            new: Arc::clone(&new),
            removed: true,
        });
        Some(new)
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn remember(&mut self, change: Change) {
        self.history.push_back(change);
        while self.history.len() > self.remembered {
            self.history.pop_front();
        }
    }

    /// Removes the whole history: only the current version is available.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
    }
}

/// Reverts a change of a collection.
fn undo(change: &Change, storage: &str, objects: &mut Objects) {
    if change.storage != storage {
        return;
    }
    match &change.old {
        Some(old) => objects.insert(change.key.clone(), Arc::clone(old)),
        None => objects.remove(&change.key),
    };
}

/// The key of an object.
pub(crate) fn key(object: &Value) -> Key {
    (
        crate::meta::namespace(object).to_owned(),
        crate::meta::name(object).to_owned(),
    )
}

#[cfg(test)]
mod tests;
