//! What all tasks of a server share.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::{sync::watch, time::Instant};

use crate::{
    SimApiConfig, access::Access, authority::Authority, clock::Clock, dice::Dice, fault::Faults,
    oracle::Oracle, store::Store,
};

/// The server's state. Locks are taken in the order of the fields and never across a wait.
pub(crate) struct Shared {
    config: Mutex<SimApiConfig>,
    store: Mutex<Store>,
    dice: Mutex<Dice>,
    access: Mutex<Access>,
    oracle: Mutex<Oracle>,
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
            back_since: Mutex::new(None),
            faults: Faults::new(config.seed),
            clock: Clock::new(config.start),
            authority,
            config: Mutex::new(config),
        }
    }

    /// The settings now.
    pub(crate) fn config(&self) -> SimApiConfig {
        lock(&self.config).clone()
    }

    /// Changes settings.
    pub(crate) fn configure(&self, change: impl FnOnce(&mut SimApiConfig)) {
        change(&mut lock(&self.config));
        // Those who depend on settings look again.
        self.changed.send_modify(|_| {});
    }

    /// Reads or writes objects; who waits for changes is told.
    pub(crate) fn with_store<R>(&self, act: impl FnOnce(&mut Store) -> R) -> R {
        let mut store = lock(&self.store);
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
        lock(&self.dice)
    }

    pub(crate) fn access(&self) -> MutexGuard<'_, Access> {
        lock(&self.access)
    }

    /// Notes that the server came back.
    pub(crate) fn came_back(&self) {
        *lock(&self.back_since) = Some(Instant::now());
    }

    /// The pods that the server relates to nodes by now.
    pub(crate) fn related_pods(&self) -> Vec<Arc<serde_json::Value>> {
        let delay = self.config().relations_after;
        let since = *lock(&self.back_since);
        if since.is_some_and(|since| since.elapsed() < delay) {
            return Vec::new();
        }
        self.with_store(|store| store.list("pods", None))
    }

    pub(crate) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.oracle)
    }
}

/// A panic of one test's closure must not hide what the others see.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
