//! What is kept: objects by collection, and the changes that led here, each with its resource version.
//!
//! Versions are handed out one by one, so the history has no gaps: what happened after a version is
//! found by counting. Compaction forgets the oldest part; who asks for it is told so.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

/// Namespace (empty for none) and name.
pub(crate) type Key = (String, String);

/// Objects of one collection.
pub(crate) type Objects = BTreeMap<Key, Arc<Value>>;

/// One change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) storage: &'static str,
    pub(crate) key: Key,
    /// The object before; none if it was made.
    pub(crate) old: Option<Arc<Value>>,
    /// The object after. For a removal, its last state with the removal's version.
    pub(crate) new: Arc<Value>,
    pub(crate) removed: bool,
}

/// The version is older than what is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest version that can be asked for.
    pub(crate) oldest: u64,
}

/// All objects and the recent past.
#[derive(Debug)]
pub(crate) struct Store {
    collections: BTreeMap<&'static str, Objects>,
    history: VecDeque<Change>,
    version: u64,
    /// Changes that are remembered.
    remembered: usize,
}

/// A version that no client has seen before.
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

    /// True when a namespace holds anything.
    pub(crate) fn is_namespace_empty(&self, namespace: &str) -> bool {
        self.collections
            .values()
            .all(|objects| objects.keys().all(|(found, _)| found != namespace))
    }

    /// A collection as it was at a version.
    pub(crate) fn at(&self, storage: &str, version: u64) -> Result<Objects, Compacted> {
        let mut objects = self.collections.get(storage).cloned().unwrap_or_default();
        for change in self.since(version)?.rev() {
            if change.storage != storage {
                continue;
            }
            match &change.old {
                Some(old) => objects.insert(change.key.clone(), Arc::clone(old)),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
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

    /// The oldest version that can be asked for.
    fn oldest(&self) -> u64 {
        self.version - self.history.len() as u64
    }

    /// Writes an object under its name and gives it its version.
    pub(crate) fn put(&mut self, storage: &'static str, mut object: Value) -> Arc<Value> {
        let version = self.next_version();
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let key = key(&object);
        let new = Arc::new(object);
        let objects = self.collections.entry(storage).or_default();
        let old = objects.insert(key.clone(), Arc::clone(&new));
        self.remember(Change {
            version,
            storage,
            key,
            old,
            new: Arc::clone(&new),
            removed: false,
        });
        new
    }

    /// Removes an object and tells its last state.
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

    /// Forgets all changes so far: only the present can be asked for.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
    }
}

/// Where an object is kept.
pub(crate) fn key(object: &Value) -> Key {
    (
        crate::meta::namespace(object).to_owned(),
        crate::meta::name(object).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, label: u8) -> Value {
        json!({ "metadata": { "namespace": "a", "name": name, "labels": { "n": label } } })
    }

    fn names(objects: &Objects) -> Vec<&str> {
        objects.keys().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn the_past_can_be_listed_and_followed_until_it_is_compacted() {
        let mut store = Store::new(100);
        store.put("pods", pod("one", 1));
        let first = store.version();
        store.put("nodes", json!({ "metadata": { "name": "n" } }));
        store.put("pods", pod("two", 1));
        store.put("pods", pod("one", 2));
        store.remove("pods", "a", "two");
        assert_eq!(names(&store.at("pods", first).unwrap()), ["one"]);
        assert_eq!(names(&store.at("pods", first + 2).unwrap()), ["one", "two"]);
        let old = store.at("pods", first).unwrap();
        assert_eq!(old.values().next().unwrap()["metadata"]["labels"]["n"], 1);
        let changes = store.since(first).unwrap().map(|change| change.version);
        assert!(changes.eq(first + 1..=first + 4));
        store.compact();
        assert_eq!(
            store.at("pods", first),
            Err(Compacted { oldest: first + 4 })
        );
        assert_eq!(store.since(first + 4).unwrap().count(), 0);
    }

    #[test]
    fn only_so_many_changes_are_remembered() {
        let mut store = Store::new(3);
        for label in 0..10 {
            store.put("pods", pod("one", label));
        }
        let now = store.version();
        assert_eq!(store.since(now - 3).unwrap().count(), 3);
        assert!(store.since(now - 4).is_err());
    }
}
