//! From a board of the kubelet to a collection of the server.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_kubelet::board::Board;
use rubelet_server::{Collection, Object};
use tokio::sync::watch;

/// Something beside the board that objects are drawn with.
pub(super) struct Beside<K> {
    /// Turns when it changes.
    pub(super) versions: watch::Receiver<u64>,
    /// At which version it last changed for an object.
    pub(super) version_of: Box<dyn Fn(&K) -> u64 + Send + Sync>,
}

/// An object that is in the collection.
struct Shown {
    /// Of the board, and of what is beside it.
    versions: (u64, u64),
    namespace: Arc<str>,
    name: Arc<str>,
}

/// Keeps a collection as the board is.
pub(super) struct Follower<K, B, F> {
    board: B,
    versions: watch::Receiver<u64>,
    collection: Arc<Collection>,
    beside: Option<Beside<K>>,
    object: F,
    seen: BTreeMap<K, Shown>,
}

impl<K, B, F> Follower<K, B, F> {
    /// Draws what is on the board with `object`.
    pub(super) fn new<T>(
        board: B,
        collection: Arc<Collection>,
        beside: Option<Beside<K>>,
        object: F,
    ) -> Self
    where
        K: Ord + Clone,
        T: PartialEq,
        B: AsRef<Board<K, T>>,
        F: Fn(Arc<T>) -> Object,
    {
        Self {
            versions: board.as_ref().versions(),
            board,
            collection,
            beside,
            object,
            seen: BTreeMap::new(),
        }
    }

    /// Follows until the board is gone.
    pub(super) async fn run<T>(mut self)
    where
        K: Ord + Clone,
        T: PartialEq,
        B: AsRef<Board<K, T>>,
        F: Fn(Arc<T>) -> Object,
    {
        loop {
            self.take_over();
            // Cancel safety: watch receivers keep what was not seen.
            let changed = match &mut self.beside {
                Some(beside) => tokio::select! {
                    changed = self.versions.changed() => changed,
                    changed = beside.versions.changed() => changed,
                },
                None => self.versions.changed().await,
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// Takes over what has changed.
    pub(super) fn take_over<T>(&mut self)
    where
        K: Ord + Clone,
        T: PartialEq,
        B: AsRef<Board<K, T>>,
        F: Fn(Arc<T>) -> Object,
    {
        self.versions.mark_unchanged();
        if let Some(beside) = &mut self.beside {
            beside.versions.mark_unchanged();
        }
        let mut gone = std::mem::take(&mut self.seen);
        for (key, version, value) in self.board.as_ref().list() {
            let second = self.beside.as_ref().map_or(0, |one| (one.version_of)(&key));
            let version = (version, second);
            let old = gone.remove(&key);
            if let Some(same) = old.filter(|old| old.versions == version) {
                self.seen.insert(key, same);
                continue;
            }
            let object = (self.object)(value);
            let shown = Shown {
                versions: version,
                namespace: Arc::clone(&object.namespace),
                name: Arc::clone(&object.name),
            };
            self.collection.put(object);
            self.seen.insert(key, shown);
        }
        for gone in gone.values() {
            let is_same =
                |shown: &Shown| shown.namespace == gone.namespace && shown.name == gone.name;
            if !self.seen.values().any(is_same) {
                self.collection.remove(&gone.namespace, &gone.name);
            }
        }
    }
}
