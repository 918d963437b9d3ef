//! From a board of the kubelet to a collection of the server.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_kubelet::board::Board;
use rubelet_server::{Collection, Object};

/// Keeps a collection as the board is, until the board is gone.
pub(super) async fn follow<K, T>(
    board: Arc<Board<K, T>>,
    collection: Arc<Collection>,
    object: impl Fn(Arc<T>) -> Object + Send + Sync,
) where
    K: Ord + Clone + Send + Sync,
    T: PartialEq + Send + Sync,
{
    let mut versions = board.versions();
    let mut seen: BTreeMap<K, (u64, Arc<str>, Arc<str>)> = BTreeMap::new();
    loop {
        versions.mark_unchanged();
        let mut gone = std::mem::take(&mut seen);
        for (key, version, value) in board.list() {
            let old = gone.remove(&key);
            if let Some(same) = old.filter(|(at, _, _)| *at == version) {
                seen.insert(key, same);
                continue;
            }
            let object = object(value);
            let names = (Arc::clone(&object.namespace), Arc::clone(&object.name));
            collection.put(object);
            seen.insert(key, (version, names.0, names.1));
        }
        for (_, namespace, name) in gone.values() {
            let replaced = seen.values().any(|(_, ns, n)| ns == namespace && n == name);
            if !replaced {
                collection.remove(namespace, name);
            }
        }
        if versions.changed().await.is_err() {
            return;
        }
    }
}
