//! What all parts of this module know: which pods use which objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rubelet_api::{container::ObjectKind, pod::Pod};
use rubelet_base::PodUid;
use rubelet_kubelet::clock::Clock;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    ChangeDetection, ObjectTtl,
    api::Api,
    cell::{Cell, ObjectKey},
    draws::{self, TokenRequest, Use},
    files::{FileKey, Files},
    follow::{Follow, weakly},
    service_env::Service,
    tokens::Held,
    wire,
};

/// Everything.
pub(super) struct Shared {
    pub(super) api: Arc<dyn Api>,
    pub(super) clock: Clock,
    pub(super) detection: ChangeDetection,
    pub(super) ttl: ObjectTtl,
    pub(super) sync_frequency: Duration,
    pub(super) files: Files,
    /// All services, for pods that want links.
    pub(super) services: Follow<Arc<Service>>,
    /// The API server's own, for pods that want none.
    pub(super) kubernetes: Follow<Arc<Service>>,
    /// Handlers of runtime classes.
    pub(super) classes: Follow<Box<str>>,
    state: Mutex<State>,
    dirty: Mutex<BTreeSet<FileKey>>,
    /// Held while files are written.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// Something is to be written.
    pub(super) write: Notify,
    /// Something may be due earlier than it was.
    pub(super) wake: Notify,
}

/// Pods and objects.
#[derive(Default)]
pub(super) struct State {
    pub(super) pods: BTreeMap<PodUid, Tracked>,
    pub(super) cells: BTreeMap<ObjectKey, Arc<Cell>>,
    /// A pod waits for the services.
    pub(super) services_in_vain: bool,
    /// Since when no pod needs what is watched as a whole.
    pub(super) unneeded: Unneeded,
}

/// Since when no pod needs them.
#[derive(Default)]
pub(super) struct Unneeded {
    pub(super) services: Option<Instant>,
    pub(super) kubernetes: Option<Instant>,
    pub(super) classes: Option<Instant>,
}

/// One pod.
pub(super) struct Tracked {
    pub(super) pod: Arc<Pod>,
    pub(super) uses: BTreeMap<ObjectKey, Use>,
    pub(super) tokens: BTreeMap<TokenRequest, Held>,
    /// The tokens on disk were looked at.
    pub(super) tokens_loaded: bool,
    news: watch::Sender<u64>,
}

impl Tracked {
    /// Something that the pod draws changed.
    pub(super) fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }
}

impl Shared {
    pub(super) fn new(
        api: Arc<dyn Api>,
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
            services: Follow::new(),
            kubernetes: Follow::new(),
            classes: Follow::new(),
            state: Mutex::default(),
            dirty: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            write: Notify::new(),
            wake: Notify::new(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pod is worked on, or was edited.
    pub(super) fn track(self: &Arc<Self>, pod: &Arc<Pod>) {
        let uses = draws::of_pod(pod);
        let mut state = self.state();
        let State { pods, cells, .. } = &mut *state;
        let tracked = pods.entry(pod.uid.clone()).or_insert_with(|| Tracked {
            pod: Arc::clone(pod),
            uses: BTreeMap::new(),
            tokens: BTreeMap::new(),
            tokens_loaded: false,
            news: watch::channel(0).0,
        });
        tracked.pod = Arc::clone(pod);
        for (key, of) in &uses {
            let cell = cells
                .entry(key.clone())
                .or_insert_with(|| Arc::new(Cell::new(key.clone())));
            let mut known = cell.state();
            if known.users.insert(pod.uid.clone(), *of).is_none() {
                (known.used_at, known.fetched_at) = (Instant::now(), None);
            }
            drop(known);
            if self.detection == ChangeDetection::Watch {
                self.follow(cell);
            }
        }
        let old = std::mem::replace(&mut tracked.uses, uses);
        for key in old.into_keys() {
            if !tracked.uses.contains_key(&key) {
                self.unuse(cells, &key, &pod.uid);
            }
        }
        drop(state);
        self.follow_services(pod);
        if pod.spec.runtime_class.is_some() {
            self.follow_classes();
        }
        self.wake.notify_one();
    }

    /// The pod uses nothing any more.
    pub(super) fn forget(&self, uid: &PodUid) {
        let mut state = self.state();
        let State { pods, cells, .. } = &mut *state;
        let Some(tracked) = pods.remove(uid) else {
            return;
        };
        for key in tracked.uses.into_keys() {
            self.unuse(cells, &key, uid);
        }
        drop(state);
        self.is_dirty(FileKey::Tokens(uid.clone()));
        self.wake.notify_one();
    }

    fn unuse(&self, cells: &mut BTreeMap<ObjectKey, Arc<Cell>>, key: &ObjectKey, uid: &PodUid) {
        let Some(cell) = cells.get(key) else {
            return;
        };
        let mut known = cell.state();
        known.users.remove(uid);
        let unused = known.users.is_empty();
        drop(known);
        if unused {
            cell.follow.stop();
            cells.remove(key);
            self.is_dirty(FileKey::Object(key.clone()));
        }
    }

    pub(super) fn cell(&self, key: &ObjectKey) -> Option<Arc<Cell>> {
        self.state().cells.get(key).map(Arc::clone)
    }

    /// Watches an object, if that is not done already.
    pub(super) fn follow(self: &Arc<Self>, cell: &Cell) {
        let convert = match cell.key.kind {
            ObjectKind::ConfigMap => wire::config_map,
            ObjectKind::Secret => wire::secret,
        };
        let key = cell.key.clone();
        let told = weakly(self, move |shared, differs| {
            shared.object_told(&key, differs);
        });
        let frozen = |object: &super::cell::Object| object.immutable;
        let api = &*self.api;
        cell.follow
            .start(api, || cell.key.target(), convert, frozen, told);
    }

    /// An object was read by its watch.
    fn object_told(&self, key: &ObjectKey, differs: bool) {
        let state = self.state();
        let Some(cell) = state.cells.get(key) else {
            return;
        };
        let mut known = cell.state();
        let in_vain = std::mem::take(&mut known.in_vain);
        known.unconfirmed = false;
        if differs || in_vain {
            let users = known.users.keys().filter_map(|uid| state.pods.get(uid));
            users.for_each(Tracked::tell);
        }
        drop(known);
        drop(state);
        self.is_dirty(FileKey::Object(key.clone()));
    }

    /// The file does not have what is known.
    pub(super) fn is_dirty(&self, key: FileKey) {
        self.dirty().insert(key);
        self.write.notify_one();
    }

    pub(super) fn take_dirty(&self) -> BTreeSet<FileKey> {
        std::mem::take(&mut *self.dirty())
    }

    fn dirty(&self) -> MutexGuard<'_, BTreeSet<FileKey>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the changes of what a pod draws.
    pub(super) fn changes(&self, uid: &PodUid) -> watch::Receiver<u64> {
        let state = self.state();
        let tracked = state.pods.get(uid);
        tracked.map_or_else(rubelet_kubelet::objects::never, |one| one.news.subscribe())
    }

    /// What of the pod's objects is known from an earlier time only, as messages name it.
    pub(super) fn unconfirmed(&self, uid: &PodUid) -> Vec<String> {
        let state = self.state();
        let Some(tracked) = state.pods.get(uid) else {
            return Vec::new();
        };
        let cells = tracked.uses.keys().filter_map(|key| state.cells.get(key));
        let old = cells.filter(|cell| cell.state().unconfirmed);
        let mut found: Vec<String> = old
            .map(|cell| format!("{} {:?}", cell.key.word(), cell.key.name))
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
