//! State that all tasks of a server share.

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

/// A part of the server with its own pod cache, which lags behind the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodCache {
    /// The node authorizer: which secrets, config maps and service accounts the pods of a node
    /// reference.
    Authorizer,
    /// NodeRestriction: for which pods a node gets tokens, and which it may delete.
    NodeRestriction,
}

/// The server's state. Locks are taken in the order of the fields and never held across an await.
pub(crate) struct ServerState {
    config: Mutex<SimApiConfig>,
    store: Mutex<Store>,
    dice: Mutex<Dice>,
    access: Mutex<Access>,
    oracle: Mutex<Oracle>,
    /// The contents of frozen pod caches.
    held: Mutex<BTreeMap<PodCache, Objects>>,
    /// When the server was restarted, if it was.
    restarted_at: Mutex<Option<Instant>>,
    pub(crate) faults: Faults,
    pub(crate) clock: Clock,
    pub(crate) authority: Authority,
    /// The version of the last change.
    changed: watch::Sender<u64>,
}

impl ServerState {
    pub(crate) fn new(config: SimApiConfig, authority: Authority) -> Self {
        let store = Store::new(config.remembered_changes);
        Self {
            changed: watch::Sender::new(store.version()),
            store: Mutex::new(store),
            dice: Mutex::new(Dice::new(config.seed)),
            access: Mutex::new(Access::new(config.seed)),
            oracle: Mutex::new(Oracle::new(config.remembered_requests)),
            held: Mutex::default(),
            restarted_at: Mutex::new(None),
            faults: Faults::new(config.seed),
            clock: Clock::new(config.start),
            authority,
            config: Mutex::new(config),
        }
    }

    /// The current settings.
    pub(crate) fn config(&self) -> SimApiConfig {
        self.config.lock().clone()
    }

    /// Changes settings.
    pub(crate) fn configure(&self, change: impl FnOnce(&mut SimApiConfig)) {
        change(&mut self.config.lock());
        // Wakes tasks that depend on settings.
        self.changed.send_modify(|_| {});
    }

    /// Reads or writes objects, and wakes tasks that wait for changes.
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

    /// Notifies of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn dice(&self) -> MutexGuard<'_, Dice> {
        self.dice.lock()
    }

    pub(crate) fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock()
    }

    /// Records a restart of the server.
    pub(crate) fn mark_restarted(&self) {
        *self.restarted_at.lock() = Some(Instant::now());
    }

    /// Freezes a pod cache.
    pub(crate) fn hold(&self, cache: PodCache) {
        self.with_store(|store| {
            let pods = store.collection("pods");
            self.held.lock().entry(cache).or_insert(pods);
        });
    }

    /// Unfreezes a pod cache.
    pub(crate) fn release(&self, cache: PodCache) {
        self.held.lock().remove(&cache);
    }

    /// A pod in the cache of NodeRestriction.
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

    /// The pods in the cache of the node authorizer.
    pub(crate) fn related_pods(&self) -> Vec<Arc<Value>> {
        let delay = self.config().relations_after;
        let since = *self.restarted_at.lock();
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

    /// The time at which the pod caches were up to date.
    fn known_until(&self) -> Instant {
        let now = Instant::now();
        now.checked_sub(self.config().cache_lag).unwrap_or(now)
    }

    pub(crate) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock()
    }
}
