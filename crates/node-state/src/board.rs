//! Boards: current values, each with the version of its last change.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

/// Objects by key with many readers. Writers never wait for readers.
#[derive(Debug)]
pub struct Board<K, T> {
    inner: Mutex<BoardState<K, T>>,
    version: watch::Sender<u64>,
}

#[derive(Debug)]
struct BoardState<K, T> {
    objects: BTreeMap<K, (u64, Arc<T>)>,
    version: u64,
}

impl<K: Ord + Clone, T: PartialEq> Board<K, T> {
    /// An empty board.
    #[must_use]
    pub fn new() -> Self {
        let (version, _) = watch::channel(0);
        Self {
            inner: Mutex::new(BoardState {
                objects: BTreeMap::new(),
                version: 0,
            }),
            version,
        }
    }

    /// Sets an object; an equal value is no change.
    pub fn set(&self, key: K, value: T) {
        let mut inner = self.inner.lock();
        if inner
            .objects
            .get(&key)
            .is_some_and(|(_, old)| **old == value)
        {
            return;
        }
        inner.version += 1;
        let version = inner.version;
        inner.objects.insert(key, (version, Arc::new(value)));
        drop(inner);
        self.version.send_replace(version);
    }

    /// Removes an object, if it exists.
    pub fn remove(&self, key: &K) {
        let mut inner = self.inner.lock();
        if inner.objects.remove(key).is_some() {
            inner.version += 1;
            let version = inner.version;
            drop(inner);
            self.version.send_replace(version);
        }
    }

    /// The object of that key.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Arc<T>> {
        self.inner
            .lock()
            .objects
            .get(key)
            .map(|(_, value)| Arc::clone(value))
    }

    /// All objects with the versions of their last changes, by key.
    #[must_use]
    pub fn list(&self) -> Vec<(K, u64, Arc<T>)> {
        let inner = self.inner.lock();
        let rows = inner.objects.iter();
        rows.map(|(key, (version, value))| (key.clone(), *version, Arc::clone(value)))
            .collect()
    }

    /// The current version, and the objects that changed after `version`, in the order of their
    /// last changes. Removed objects are not included.
    #[must_use]
    pub fn since(&self, version: u64) -> (u64, Vec<(K, u64, Arc<T>)>) {
        let inner = self.inner.lock();
        let rows = inner.objects.iter();
        let mut changed: Vec<_> = rows
            .filter(|(_, (at, _))| *at > version)
            .map(|(key, (at, value))| (key.clone(), *at, Arc::clone(value)))
            .collect();
        let now = inner.version;
        drop(inner);
        changed.sort_unstable_by_key(|(_, at, _)| *at);
        (now, changed)
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.lock().objects.len()
    }

    /// True if there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Follows the version; level-triggered.
    #[must_use]
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}

impl<K: Ord + Clone, T: PartialEq> Default for Board<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_value_is_no_change() {
        let board = Board::new();
        let mut versions = board.versions();
        board.set("a", 1);
        assert!(versions.has_changed().unwrap());
        versions.mark_unchanged();
        board.set("a", 1);
        assert!(!versions.has_changed().unwrap());
        board.set("b", 2);
        board.set("a", 3);
        let rows: Vec<_> = board
            .list()
            .iter()
            .map(|(key, at, value)| (*key, *at, **value))
            .collect();
        assert_eq!(rows, [("a", 3, 3), ("b", 2, 2)]);
        board.remove(&"a");
        assert_eq!((board.get(&"a"), *versions.borrow()), (None, 4));
    }

    #[test]
    fn what_changed_since_a_version_has_a_larger_one() {
        let board = Board::new();
        for key in 0..5 {
            board.set(key, "old");
        }
        let mark = *board.versions().borrow();
        board.set(3, "new");
        board.set(2, "old");
        board.remove(&7);
        board.set(9, "new");
        board.set(1, "new");
        board.remove(&9);
        let (now, rows) = board.since(mark);
        let changed: Vec<_> = rows.into_iter().map(|(key, ..)| key).collect();
        assert_eq!((changed, now), (vec![3, 1], *board.versions().borrow()));
        assert_eq!((board.since(now).1.len(), board.len()), (0, 5));
    }
}
