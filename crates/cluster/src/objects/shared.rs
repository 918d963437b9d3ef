//! State that all parts of this module share: which pods use which objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use rubelet_api::{container::ObjectKind, pod::Pod};
use rubelet_base::PodUid;
use rubelet_node_state::clock::Clock;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    ChangeDetection, ObjectTtl,
    api::ObjectsApi,
    cached_object::CachedObject,
    files::{FileKey, Files},
    object_key::ObjectKey,
    object_refs::{self, TokenRequest, Use},
    records::AccountRecord,
    service_env::Service,
    tracked_token::TrackedToken,
    watch_cache::{WatchCache, weak_callback},
    wire,
};

/// The state that the parts of [`ClusterObjects`](super::ClusterObjects) share.
pub(super) struct ObjectsInner {
    pub(super) api: Arc<dyn ObjectsApi>,
    pub(super) clock: Clock,
    pub(super) detection: ChangeDetection,
    pub(super) ttl: ObjectTtl,
    pub(super) sync_frequency: Duration,
    pub(super) files: Files,
    /// All services, for pods that want links.
    pub(super) services: WatchCache<Arc<Service>>,
    /// The API server's own, for pods that want none.
    pub(super) kubernetes: WatchCache<Arc<Service>>,
    /// Handlers of runtime classes.
    pub(super) classes: WatchCache<Box<str>>,
    // Order of locks: `state`, then an object's own state; `state`, then a watch.
    state: Mutex<ObjectsState>,
    dirty: Mutex<BTreeSet<FileKey>>,
    /// Held while files are written.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// Something must be written.
    pub(super) write: Notify,
    /// Something may be due earlier than it was.
    pub(super) wake: Notify,
}

/// Pods and objects.
#[derive(Default)]
pub(super) struct ObjectsState {
    pub(super) pods: BTreeMap<PodUid, TrackedPod>,
    pub(super) objects_by_key: BTreeMap<ObjectKey, Arc<CachedObject>>,
    /// A pod waits for the services.
    pub(super) wake_when_services_read: bool,
    /// Since when no pod needs what is watched as a whole.
    pub(super) unneeded: IdleSince,
}

/// Since when no pod needs them.
#[derive(Default)]
pub(super) struct IdleSince {
    pub(super) services: Option<Instant>,
    pub(super) kubernetes: Option<Instant>,
    pub(super) classes: Option<Instant>,
}

/// One pod.
pub(super) struct TrackedPod {
    pub(super) pod: Arc<Pod>,
    pub(super) uses: BTreeMap<ObjectKey, Use>,
    pub(super) tokens: BTreeMap<TokenRequest, TrackedToken>,
    /// A token was requested from the API server before: a refusal now is not due to the lag of its
    /// caches.
    pub(super) asked_for_token: bool,
    /// The same of its service account.
    pub(super) asked_for_account: bool,
    /// Its service account as it was read last.
    pub(super) account: Option<AccountRecord>,
    /// The tokens on disk were read.
    pub(super) tokens_loaded: bool,
    news: watch::Sender<u64>,
}

impl TrackedPod {
    /// An object that the pod references changed.
    pub(super) fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }
}

impl ObjectsInner {
    pub(super) fn new(
        api: Arc<dyn ObjectsApi>,
        clock: Clock,
        files: Files,
        (detection, ttl): (ChangeDetection, ObjectTtl),
        sync_frequency: Duration,
    ) -> Self {
        Self {
            api,
            clock,
            detection,
            ttl,
            sync_frequency,
            files,
            services: WatchCache::new(),
            kubernetes: WatchCache::new(),
            classes: WatchCache::new(),
            state: Mutex::default(),
            dirty: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            write: Notify::new(),
            wake: Notify::new(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ObjectsState> {
        self.state.lock()
    }

    /// The pod is worked on, or was edited.
    pub(super) fn track(self: &Arc<Self>, pod: &Arc<Pod>) {
        let uses = object_refs::of_pod(pod);
        let mut state = self.state();
        let ObjectsState {
            pods,
            objects_by_key,
            ..
        } = &mut *state;
        let tracked = pods.entry(pod.uid.clone()).or_insert_with(|| TrackedPod {
            pod: Arc::clone(pod),
            uses: BTreeMap::new(),
            tokens: BTreeMap::new(),
            asked_for_token: false,
            asked_for_account: false,
            account: None,
            tokens_loaded: false,
            news: watch::channel(0).0,
        });
        tracked.pod = Arc::clone(pod);
        for (key, of) in &uses {
            let cached = objects_by_key
                .entry(key.clone())
                .or_insert_with(|| Arc::new(CachedObject::new(key.clone())));
            let mut known = cached.state();
            if known.users.insert(pod.uid.clone(), *of).is_none() {
                // A new user must not get what was fetched before it came.
                (known.used_at, known.fetched_at) = (Instant::now(), None);
            }
            drop(known);
            if self.detection == ChangeDetection::Watch {
                self.watch(cached);
            }
        }
        let old = std::mem::replace(&mut tracked.uses, uses);
        for key in old.into_keys() {
            if !tracked.uses.contains_key(&key) {
                self.unuse(objects_by_key, &key, &pod.uid);
            }
        }
        drop(state);
        self.watch_services(pod);
        if pod.spec.runtime_class.is_some() {
            self.watch_classes();
        }
        self.wake.notify_one();
    }

    /// The pod uses nothing any more.
    pub(super) fn forget(&self, uid: &PodUid) {
        let mut state = self.state();
        let ObjectsState {
            pods,
            objects_by_key,
            ..
        } = &mut *state;
        let Some(tracked) = pods.remove(uid) else {
            return;
        };
        for key in tracked.uses.into_keys() {
            self.unuse(objects_by_key, &key, uid);
        }
        drop(state);
        self.is_dirty(FileKey::Tokens(uid.clone()));
        self.wake.notify_one();
    }

    fn unuse(
        &self,
        objects_by_key: &mut BTreeMap<ObjectKey, Arc<CachedObject>>,
        key: &ObjectKey,
        uid: &PodUid,
    ) {
        let Some(cached) = objects_by_key.get(key) else {
            return;
        };
        let mut known = cached.state();
        known.users.remove(uid);
        let unused = known.users.is_empty();
        drop(known);
        if unused {
            // Its file goes as well: a secret that no pod uses does not stay on disk.
            cached.cache.stop();
            objects_by_key.remove(key);
            self.is_dirty(FileKey::Object(key.clone()));
        }
    }

    pub(super) fn cached(&self, key: &ObjectKey) -> Option<Arc<CachedObject>> {
        self.state().objects_by_key.get(key).map(Arc::clone)
    }

    /// Watches an object, if that is not done already.
    pub(super) fn watch(self: &Arc<Self>, cached: &CachedObject) {
        let convert = match cached.key.kind {
            ObjectKind::ConfigMap => wire::config_map,
            ObjectKind::Secret => wire::secret,
        };
        let key = cached.key.clone();
        let on_change = weak_callback(self, move |shared, differs| {
            shared.on_object_change(&key, differs);
        });
        let frozen = |object: &super::object_content::Object| object.immutable;
        let api = &*self.api;
        cached
            .cache
            .start(api, || cached.key.target(), convert, frozen, on_change);
    }

    /// An object was read by its watch.
    fn on_object_change(&self, key: &ObjectKey, differs: bool) {
        let state = self.state();
        let Some(cached) = state.objects_by_key.get(key) else {
            return;
        };
        let mut known = cached.state();
        let wake_when_read = std::mem::take(&mut known.wake_when_read);
        known.unconfirmed = false;
        if differs || wake_when_read {
            let users = known.users.keys().filter_map(|uid| state.pods.get(uid));
            users.for_each(TrackedPod::tell);
        }
        drop(known);
        drop(state);
        self.is_dirty(FileKey::Object(key.clone()));
    }

    /// The file is out of date.
    pub(super) fn is_dirty(&self, key: FileKey) {
        self.dirty().insert(key);
        self.write.notify_one();
    }

    pub(super) fn take_dirty(&self) -> BTreeSet<FileKey> {
        std::mem::take(&mut *self.dirty())
    }

    fn dirty(&self) -> MutexGuard<'_, BTreeSet<FileKey>> {
        self.dirty.lock()
    }

    /// Counts the changes of the objects that a pod references.
    pub(super) fn changes(&self, uid: &PodUid) -> watch::Receiver<u64> {
        let state = self.state();
        let tracked = state.pods.get(uid);
        tracked.map_or_else(rubelet_node_state::objects::never, |one| {
            one.news.subscribe()
        })
    }

    /// The pod's objects that the API server has not confirmed since, as messages name them.
    pub(super) fn unconfirmed(&self, uid: &PodUid) -> Vec<String> {
        let state = self.state();
        let Some(tracked) = state.pods.get(uid) else {
            return Vec::new();
        };
        let objects_by_key = tracked
            .uses
            .keys()
            .filter_map(|key| state.objects_by_key.get(key));
        let old = objects_by_key.filter(|cached| cached.state().unconfirmed);
        let mut found: Vec<String> = old
            .map(|cached| format!("{} {:?}", cached.key.word(), cached.key.name))
            .collect();
        if tracked.tokens.values().any(|held| held.unconfirmed) {
            found.push(format!(
                "token of service account {:?}",
                tracked.pod.spec.service_account
            ));
        }
        found
    }
}
