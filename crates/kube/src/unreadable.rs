//! Fields of API objects that cannot be read: logged once, and listed in the node's status until they
//! change.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use rubelet_yaml::SkippedField;
use tokio::time::Instant;

use crate::clock::WallClock;

/// Objects that are remembered. More of them mean that nothing fits, which the first ones show.
const MAX_OBJECTS: usize = 100;
/// Fields of one object that are remembered.
const MAX_FIELDS: usize = 10;
/// Time after which an entry expires that no watch clears.
const TEMPORARY_FOR: Duration = Duration::from_secs(15 * 60);

/// An object of the API server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// The plural, such as `nodes`; with the part behind a slash where it is an object of its own,
    /// such as `serviceaccounts/token`.
    pub resource: Box<str>,
    /// `metadata.namespace`; empty if it is in none.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.resource, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.resource, self.name),
        }
    }
}

/// An object that can't be read, or not in all its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableObject {
    /// The object.
    pub object: ObjectName,
    /// Fields that are left out, the first ones of many; a field without a path means the whole
    /// object.
    pub fields: Vec<SkippedField>,
    /// Since when.
    pub since: Timestamp,
}

/// All such objects. Clones share them.
#[derive(Clone)]
pub struct UnreadableObjects(Arc<UnreadableEntries>);

struct UnreadableEntries {
    clock: WallClock,
    /// Nothing needs to be cleared, which is nearly always so.
    is_empty: AtomicBool,
    /// It was logged that there are more than [`MAX_OBJECTS`].
    overflowed: AtomicBool,
    entries: Mutex<BTreeMap<(Reader, ObjectName), Entry>>,
}

/// The reader of the object: others may read other fields of it.
pub(crate) type Reader = &'static str;

struct Entry {
    fields: Vec<SkippedField>,
    since: Timestamp,
    /// When it goes by itself; never for what a watch shows.
    until: Option<Instant>,
}

/// Retention of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    /// Until the reader clears it.
    UntilCleared,
    /// For a while.
    Temporary,
}

impl UnreadableObjects {
    pub(crate) fn new(clock: WallClock) -> Self {
        Self(Arc::new(UnreadableEntries {
            clock,
            is_empty: AtomicBool::new(true),
            overflowed: AtomicBool::new(false),
            entries: Mutex::default(),
        }))
    }

    /// All of them, by name.
    #[must_use]
    pub fn list(&self) -> Vec<UnreadableObject> {
        let mut found: BTreeMap<ObjectName, UnreadableObject> = BTreeMap::new();
        for ((_, object), entry) in self.lock().iter() {
            let one = found
                .entry(object.clone())
                .or_insert_with(|| UnreadableObject {
                    object: object.clone(),
                    fields: Vec::new(),
                    since: entry.since,
                });
            one.since = one.since.min(entry.since);
            for field in &entry.fields {
                if !one.fields.contains(field) {
                    one.fields.push(field.clone());
                }
            }
        }
        found.into_values().collect()
    }

    /// Notes what a reader that checks the object whenever it changes can't read of it; nothing, if
    /// it can read all. `reader` tells it apart from others.
    pub fn note(&self, reader: &'static str, object: &ObjectName, fields: Vec<SkippedField>) {
        if fields.is_empty() {
            self.clear(reader, object);
        } else {
            self.put(reader, object, fields, Retention::UntilCleared);
        }
    }

    /// Records the fields of an object whose removal is not observed: they are listed for 15 minutes.
    pub fn note_temporarily(
        &self,
        reader: &'static str,
        object: &ObjectName,
        fields: Vec<SkippedField>,
    ) {
        self.put(reader, object, fields, Retention::Temporary);
    }

    /// Whether there is nothing that could be cleared.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self, reader: Reader, object: &ObjectName) {
        if !self.is_empty() {
            let mut entries = self.lock();
            entries.remove(&(reader, object.clone()));
            self.0.is_empty.store(entries.is_empty(), Ordering::Relaxed);
        }
    }

    pub(crate) fn put(
        &self,
        reader: Reader,
        object: &ObjectName,
        mut fields: Vec<SkippedField>,
        lasting: Retention,
    ) {
        fields.truncate(MAX_FIELDS);
        let until = (lasting == Retention::Temporary).then(|| Instant::now() + TEMPORARY_FOR);
        let key = (reader, object.clone());
        let mut entries = self.lock();
        let old = entries.get(&key);
        if old.is_none() && entries.len() >= MAX_OBJECTS {
            // What is not remembered would be logged with each change.
            if !self.0.overflowed.swap(true, Ordering::Relaxed) {
                tracing::warn!(%object, "More than {MAX_OBJECTS} API objects cannot be read in all their fields; the others are not logged");
            }
            return;
        }
        if entries.len() < MAX_OBJECTS {
            self.0.overflowed.store(false, Ordering::Relaxed);
        }
        if old.is_none_or(|old| old.fields != fields) {
            for SkippedField { field, problem } in &fields {
                tracing::warn!(%object, field, problem, "Ignoring a field of an API object that cannot be read");
            }
        }
        let since = old.map_or_else(|| (self.0.clock)(), |old| old.since);
        let entry = Entry {
            fields,
            since,
            until,
        };
        entries.insert(key, entry);
        self.0.is_empty.store(false, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Reader, ObjectName), Entry>> {
        let entries = self.0.entries.lock();
        let mut entries = entries;
        let now = Instant::now();
        entries.retain(|_, entry| entry.until.is_none_or(|until| now < until));
        entries
    }
}

impl fmt::Debug for UnreadableObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// The object of a path: the resource, the namespace, and the name if there is one.
pub(crate) fn object_of_path(path: &str) -> ObjectName {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match parts.next() {
        Some("api") => parts.next(),
        _ => parts.nth(1),
    };
    let rest: Vec<&str> = parts.collect();
    let (namespace, rest) = match rest.as_slice() {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let resource = rest.first().copied().unwrap_or_default();
    ObjectName {
        resource: match rest.get(2) {
            None | Some(&"status") => resource.into(),
            Some(part) => format!("{resource}/{part}").into(),
        },
        namespace: namespace.into(),
        name: rest.get(1).copied().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests;
