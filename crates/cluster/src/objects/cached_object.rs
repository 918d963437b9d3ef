//! One config map or secret, and who uses it.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use rubelet_base::PodUid;
use tokio::time::Instant;

use super::{
    object_content::Object, object_key::ObjectKey, object_refs::Use, watch_cache::WatchCache,
};

/// An object that pods of this node use.
pub(super) struct CachedObject {
    pub(super) key: ObjectKey,
    pub(super) cache: WatchCache<Object>,
    state: Mutex<CachedObjectState>,
}

/// The state of a cached object besides its content.
pub(super) struct CachedObjectState {
    /// The pods that use it, and for what.
    pub(super) users: BTreeMap<PodUid, Use>,
    /// The time of the last read.
    pub(super) used_at: Instant,
    /// The time of the last fetch without a watch; `None`: a fetch is due.
    pub(super) fetched_at: Option<Instant>,
    /// It was read before it was confirmed.
    pub(super) wake_when_read: bool,
    /// The known content was read from disk, or may be old.
    pub(super) unconfirmed: bool,
    /// The disk was read.
    pub(super) loaded: bool,
}

impl CachedObject {
    pub(super) fn new(key: ObjectKey) -> Self {
        Self {
            key,
            cache: WatchCache::new(),
            state: Mutex::new(CachedObjectState {
                users: BTreeMap::new(),
                used_at: Instant::now(),
                fetched_at: None,
                wake_when_read: false,
                unconfirmed: false,
                loaded: false,
            }),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, CachedObjectState> {
        self.state.lock()
    }

    /// The known object.
    pub(super) fn value(&self) -> Option<Object> {
        self.cache.view().known.values().next().cloned()
    }

    /// Whether a running container of a pod uses it, not only a container start.
    pub(super) fn has_volumes(&self) -> bool {
        self.state().users.values().any(|of| *of == Use::Volume)
    }
}
