//! What all tasks of a server share.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use crate::{
    SimApiConfig,
    access::Access,
    authority::Authority,
    clock::Clock,
    dice::Dice,
    fault::Faults,
    oracle::Oracle,
    store::{Objects, Store},
};

/// A part of the server that knows pods from a cache of its own, which lags behind what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodCache {
    /// The authorizer of nodes: which secrets, maps and service accounts the pods of a node name.
    Authorizer,
    /// NodeRestriction: for which pods a node gets tokens, and which it may delete.
    NodeRestriction,
}

/// The server's state. Locks are taken in the order of the fields and never across a wait.
pub(crate) struct Shared {
    config: Mutex<SimApiConfig>,
    store: Mutex<Store>,
    dice: Mutex<Dice>,
    access: Mutex<Access>,
    oracle: Mutex<Oracle>,
    /// The pods that parts of the server continue to know, while their caches are held.
    held: Mutex<BTreeMap<PodCache, Objects>>,
    /// When the server came back, if it was away.
    back_since: Mutex<Option<Instant>>,
    pub(crate) faults: Faults,
    pub(crate) clock: Clock,
    pub(crate) authority: Authority,
    /// The version of the last change.
    changed: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn new(config: SimApiConfig, authority: Authority) -> Self {
        let store = Store::new(config.remembered_changes);
        Self {
            changed: watch::Sender::new(store.version()),
            store: Mutex::new(store),
            dice: Mutex::new(Dice::new(config.seed)),
            access: Mutex::new(Access::new(config.seed)),
            oracle: Mutex::new(Oracle::new(config.remembered_requests)),
            held: Mutex::default(),
            back_since: Mutex::new(None),
            faults: Faults::new(config.seed),
            clock: Clock::new(config.start),
            authority,
            config: Mutex::new(config),
        }
    }

    /// The settings now.
    pub(crate) fn config(&self) -> SimApiConfig {
        self.config.lock().clone()
    }

    /// Changes settings.
    pub(crate) fn configure(&self, change: impl FnOnce(&mut SimApiConfig)) {
        change(&mut self.config.lock());
        // Those who depend on settings look again.
        self.changed.send_modify(|_| {});
    }

    /// Reads or writes objects; wakes those who wait for changes.
    pub(crate) fn with_store<R>(&self, act: impl FnOnce(&mut Store) -> R) -> R {
        let mut store = self.store.lock();
        let result = act(&mut store);
        let version = store.version();
        drop(store);
        self.changed.send_if_modified(|known| {
            let is_new = *known != version;
            *known = version;
            is_new
        });
        result
    }

    /// Tells when something changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn dice(&self) -> MutexGuard<'_, Dice> {
        self.dice.lock()
    }

    pub(crate) fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock()
    }

    /// Notes that the server came back.
    pub(crate) fn came_back(&self) {
        *self.back_since.lock() = Some(Instant::now());
    }

    /// A part of the server learns nothing of pods from now on.
    pub(crate) fn hold(&self, cache: PodCache) {
        self.with_store(|store| {
            let pods = store.collection("pods");
            self.held.lock().entry(cache).or_insert(pods);
        });
    }

    /// A part of the server knows all pods again.
    pub(crate) fn release(&self, cache: PodCache) {
        self.held.lock().remove(&cache);
    }

    /// A pod as NodeRestriction knows it.
    pub(crate) fn pod_for_admission(
        &self,
        store: &Store,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        match self.held.lock().get(&PodCache::NodeRestriction) {
            Some(held) => held.get(&(namespace.to_owned(), name.to_owned())).cloned(),
            None => {
                let then = self.known_until();
                store.get_then("pods", (namespace, name), then).cloned()
            }
        }
    }

    /// The pods that the server relates to nodes by now.
    pub(crate) fn related_pods(&self) -> Vec<Arc<Value>> {
        let delay = self.config().relations_after;
        let since = *self.back_since.lock();
        if since.is_some_and(|since| since.elapsed() < delay) {
            return Vec::new();
        }
        if let Some(held) = self.held.lock().get(&PodCache::Authorizer) {
            return held.values().cloned().collect();
        }
        let then = self.known_until();
        let pods = self.with_store(|store| store.collection_then("pods", then));
        pods.into_values().collect()
    }

    /// Caches of pods hold what was stored at this time.
    fn known_until(&self) -> Instant {
        let now = Instant::now();
        now.checked_sub(self.config().cache_lag).unwrap_or(now)
    }

    pub(crate) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock()
    }
}
