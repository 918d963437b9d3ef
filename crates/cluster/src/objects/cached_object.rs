//! One config map or secret, and who uses it.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use rubelet_api::objects::{ConfigMap, Secret};
use rubelet_base::PodUid;
use tokio::time::Instant;

use super::{object_key::ObjectKey, object_refs::Use, watch_cache::WatchCache};

/// The cached content of an object.
#[derive(Clone, PartialEq)]
pub(super) struct Object {
    /// `metadata.uid`; empty if it is not known.
    pub(super) uid: Box<str>,
    /// What is in it.
    pub(super) content: Content,
    /// `immutable`.
    pub(super) immutable: bool,
}

/// What is in an object.
#[derive(Clone, PartialEq)]
pub(super) enum Content {
    /// ConfigMap.
    ConfigMap(Arc<ConfigMap>),
    /// Secret.
    Secret(Arc<Secret>),
}

/// An object that pods of this node use.
pub(super) struct CachedObject {
    pub(super) key: ObjectKey,
    pub(super) cache: WatchCache<Object>,
    state: Mutex<CachedObjectState>,
}

/// What changes about an object besides its content.
pub(super) struct CachedObjectState {
    /// Who uses it, and for what.
    pub(super) users: BTreeMap<PodUid, Use>,
    /// When it was last read.
    pub(super) used_at: Instant,
    /// When it was last fetched without a watch; `None`: it has to be.
    pub(super) fetched_at: Option<Instant>,
    /// Somebody read it before it was known for sure.
    pub(super) wake_when_read: bool,
    /// What is known was read from disk, or may be old.
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

    /// Whether a pod needs it in a running container, and not only to start one.
    pub(super) fn has_volumes(&self) -> bool {
        self.state().users.values().any(|of| *of == Use::Volume)
    }
}
