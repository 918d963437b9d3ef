//! The contents of one watch, kept in memory: a single object, all services, or all runtime
//! classes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use rubelet_kube::{Change, WatchTarget};
use tokio::{sync::watch, task::AbortHandle, time::timeout};

use super::{
    api::ObjectsApi,
    wire::{Key, WireObject},
};

/// Converts an object of the API server to the cached value; `None` if it is not used.
pub(super) type Convert<T> = fn(WireObject) -> (Key, Option<T>);

/// The content of the cache.
#[derive(Clone)]
pub(super) struct CacheView<T> {
    /// By key.
    pub(super) known: BTreeMap<Key, T>,
    /// The content is current: it was read since the running watch began.
    pub(super) confirmed: bool,
    /// Something was read once; it may be old.
    pub(super) read: bool,
    /// It never changes again.
    frozen: bool,
    /// Identifies the watch that may write: an aborted task may still be in the middle of a change.
    generation: u64,
}

impl<T> Default for CacheView<T> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            confirmed: false,
            read: false,
            frozen: false,
            generation: 0,
        }
    }
}

/// Follows one watch. Without one it is quiet, and keeps what it knew.
pub(super) struct WatchCache<T> {
    view: watch::Sender<CacheView<T>>,
    running: Mutex<Option<WatchTask>>,
}

/// The task of a watch; it ends with this.
struct WatchTask(AbortHandle);

impl Drop for WatchTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T: Clone + PartialEq + Send + Sync + 'static> WatchCache<T> {
    pub(super) fn new() -> Self {
        Self {
            view: watch::channel(CacheView::default()).0,
            running: Mutex::default(),
        }
    }

    /// Watches from now on, if it does not already. `on_change` is called after each change; with
    /// `true` if the content differs from what could be read before. An object for
    /// which `freezes` is true never changes again.
    pub(super) fn start(
        &self,
        api: &dyn ObjectsApi,
        target: impl FnOnce() -> WatchTarget,
        convert: Convert<T>,
        freezes: fn(&T) -> bool,
        on_change: impl Fn(bool) + Send + Sync + 'static,
    ) {
        let mut running = self.running();
        let goes_on = running.as_ref().is_some_and(|one| !one.0.is_finished());
        if goes_on || self.view.borrow().frozen {
            return;
        }
        let mut feed = api.watch(target());
        let view = self.view.clone();
        view.send_modify(|view| view.generation += 1);
        let generation = view.borrow().generation;
        let task = tokio::spawn(async move {
            loop {
                let change = feed.next().await;
                let mut differs = false;
                let changed = view.send_if_modified(|view| {
                    if view.generation != generation {
                        return false;
                    }
                    let (read, first) = (view.read, !view.confirmed);
                    let changed = apply(view, change, convert);
                    differs = read && changed;
                    view.frozen = view.confirmed && view.known.values().any(freezes);
                    changed || first && view.confirmed
                });
                // Outside of the closure, which holds the lock of the view.
                if changed {
                    on_change(differs);
                }
                if view.borrow().frozen {
                    return;
                }
            }
        });
        *running = Some(WatchTask(task.abort_handle()));
    }

    /// Ends the watch. What is known stays, but may be old from now on.
    pub(super) fn stop(&self) {
        if self.running().take().is_some() {
            self.view.send_modify(|view| {
                view.confirmed = view.frozen;
                view.generation += 1;
            });
        }
    }

    /// Ends the watch, and drops its contents, which are no longer used.
    pub(super) fn end(&self) {
        self.stop();
        self.view.send_modify(|view| {
            *view = CacheView {
                generation: view.generation,
                ..CacheView::default()
            };
        });
    }

    /// Whether there is a watch that may report changes.
    pub(super) fn runs(&self) -> bool {
        let running = self.running();
        running.as_ref().is_some_and(|one| !one.0.is_finished())
    }

    /// Notes what was read without a watch; `None`: there is no such object. A watch knows better.
    pub(super) fn note(&self, key: Key, value: Option<T>) -> bool {
        self.view.send_if_modified(|view| {
            if view.confirmed {
                return false;
            }
            let changed = view.known.get(&key) != value.as_ref();
            match value {
                Some(value) => view.known.insert(key, value),
                None => view.known.remove(&key),
            };
            view.read = true;
            changed
        })
    }

    /// Restores what an earlier process read, if nothing was read since.
    pub(super) fn restore(&self, known: BTreeMap<Key, T>) {
        self.view.send_if_modified(|view| {
            let empty = !view.read;
            if empty {
                view.known = known;
                view.read = true;
            }
            empty
        });
    }

    /// The content of the cache.
    pub(super) fn view(&self) -> watch::Ref<'_, CacheView<T>> {
        self.view.borrow()
    }

    /// Waits for the first answer of the watch; false if it takes longer than `limit`.
    pub(super) async fn is_read_within(&self, limit: Duration) -> bool {
        let mut view = self.view.subscribe();
        let confirmed = view.wait_for(|view| view.confirmed);
        matches!(timeout(limit, confirmed).await, Ok(Ok(_)))
    }

    fn running(&self) -> MutexGuard<'_, Option<WatchTask>> {
        self.running.lock()
    }
}

/// Applies a change; true if anything is not as it was.
fn apply<T: PartialEq>(
    view: &mut CacheView<T>,
    change: Change<WireObject>,
    convert: Convert<T>,
) -> bool {
    match change {
        Change::Listed(list) => {
            let listed = list.into_iter().map(convert);
            let known: BTreeMap<Key, T> = listed
                .filter_map(|(key, value)| Some((key, value?)))
                .collect();
            let changed = view.known != known;
            view.known = known;
            (view.confirmed, view.read) = (true, true);
            changed
        }
        Change::Applied(one) => match convert(one) {
            (key, Some(value)) => {
                let changed = view.known.get(&key) != Some(&value);
                view.known.insert(key, value);
                changed
            }
            (key, None) => view.known.remove(&key).is_some(),
        },
        Change::Deleted(one) => view.known.remove(&convert(one).0).is_some(),
    }
}

/// Nothing freezes.
pub(super) fn never<T>(_: &T) -> bool {
    false
}

/// For tasks with a receiver that may be gone.
pub(super) fn weak_callback<S: Send + Sync + 'static>(
    of: &Arc<S>,
    tell: impl Fn(&Arc<S>, bool) + Send + Sync + 'static,
) -> impl Fn(bool) + Send + Sync + 'static {
    let of = Arc::downgrade(of);
    move |differs| {
        if let Some(of) = of.upgrade() {
            tell(&of, differs);
        }
    }
}
