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

/// Keeps a collection as the board is, until the board is gone.
pub(super) async fn follow<K, T>(
    board: Arc<Board<K, T>>,
    collection: Arc<Collection>,
    mut beside: Option<Beside<K>>,
    object: impl Fn(Arc<T>) -> Object + Send + Sync,
) where
    K: Ord + Clone + Send + Sync,
    T: PartialEq + Send + Sync,
{
    let mut versions = board.versions();
    let mut seen: BTreeMap<K, Shown> = BTreeMap::new();
    loop {
        versions.mark_unchanged();
        if let Some(beside) = &mut beside {
            beside.versions.mark_unchanged();
        }
        let mut gone = std::mem::take(&mut seen);
        for (key, version, value) in board.list() {
            let second = beside.as_ref().map_or(0, |one| (one.version_of)(&key));
            let version = (version, second);
            let old = gone.remove(&key);
            if let Some(same) = old.filter(|old| old.versions == version) {
                seen.insert(key, same);
                continue;
            }
            let object = object(value);
            let shown = Shown {
                versions: version,
                namespace: Arc::clone(&object.namespace),
                name: Arc::clone(&object.name),
            };
            collection.put(object);
            seen.insert(key, shown);
        }
        for gone in gone.values() {
            let is_same =
                |shown: &Shown| shown.namespace == gone.namespace && shown.name == gone.name;
            if !seen.values().any(is_same) {
                collection.remove(&gone.namespace, &gone.name);
            }
        }
        // Cancel safety: watch receivers keep what was not seen.
        let changed = match &mut beside {
            Some(beside) => tokio::select! {
                changed = versions.changed() => changed,
                changed = beside.versions.changed() => changed,
            },
            None => versions.changed().await,
        };
        if changed.is_err() {
            return;
        }
    }
}
