//! From a board of the kubelet to a collection of the server.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_node_state::board::Board;
use rubelet_server::{Collection, Object};
use tokio::sync::watch;

/// Versions of data outside the board from which objects are rendered.
pub(super) struct ExtraVersions<K> {
    /// Notifies of changes.
    pub(super) versions: watch::Receiver<u64>,
    /// The version at which it last changed for an object.
    pub(super) version_of: Box<dyn Fn(&K) -> u64 + Send + Sync>,
}

/// An object that is in the collection.
struct Shown {
    /// Of the board, and of the data outside it.
    versions: (u64, u64),
    namespace: Arc<str>,
    name: Arc<str>,
}

/// Keeps a collection in sync with a board.
pub(super) struct Follower<K, B, F> {
    board: B,
    versions: watch::Receiver<u64>,
    collection: Arc<Collection>,
    beside: Option<ExtraVersions<K>>,
    object: F,
    seen: BTreeMap<K, Shown>,
}

impl<K, B, F> Follower<K, B, F> {
    /// Renders the board's entries with `object`.
    pub(super) fn new<T>(
        board: B,
        collection: Arc<Collection>,
        beside: Option<ExtraVersions<K>>,
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

    /// Follows until the board is dropped.
    pub(super) async fn run<T>(mut self)
    where
        K: Ord + Clone,
        T: PartialEq,
        B: AsRef<Board<K, T>>,
        F: Fn(Arc<T>) -> Object,
    {
        loop {
            self.sync();
            // Cancel safety: watch receivers keep changes that were not observed.
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

    /// Publishes what has changed.
    pub(super) fn sync<T>(&mut self)
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
