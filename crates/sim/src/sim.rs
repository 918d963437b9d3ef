//! Handle of a model, and waiting for its state.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rubelet_cri::{ImageService, RuntimeService, Timeouts};
use tokio::{sync::watch, time::sleep_until};

use crate::{Entry, Oracle, state::SimState, wait::Wait};

/// A model runtime. Clones are the same runtime.
#[derive(Clone)]
pub struct Sim(Arc<SimParts>);

struct SimParts {
    timeouts: Timeouts,
    state: Mutex<SimState>,
    /// Notified whenever the state changes for another reason than time.
    changed: watch::Sender<()>,
}

impl Sim {
    /// A runtime without pods and images, ready to serve. Must be created inside a tokio runtime;
    /// if time is to be paused, after that.
    #[must_use]
    pub fn new() -> Self {
        Self::with_timeouts(Timeouts::default())
    }

    /// The same, with other deadlines for its callers.
    #[must_use]
    pub fn with_timeouts(timeouts: Timeouts) -> Self {
        Self(Arc::new(SimParts {
            timeouts,
            state: Mutex::new(SimState::new()),
            changed: watch::Sender::new(()),
        }))
    }

    /// The runtime service, as callers use it.
    #[must_use]
    pub fn runtime(&self) -> Arc<dyn RuntimeService> {
        Arc::new(self.clone())
    }

    /// The image service, as callers use it.
    #[must_use]
    pub fn images(&self) -> Arc<dyn ImageService> {
        Arc::new(self.clone())
    }

    /// Everything that happened until now.
    #[must_use]
    pub fn oracle(&self) -> Oracle {
        self.look(|state| Oracle::new(state.log.clone()))
    }

    /// The entries after the first `mark` ones, without copying the whole record.
    #[must_use]
    pub fn entries_since(&self, mark: usize) -> Vec<Entry> {
        self.look(|state| state.log.iter().skip(mark).cloned().collect())
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.0.timeouts
    }

    /// Changes the state, and wakes tasks that wait for a change.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut SimState) -> R) -> R {
        let result = change(&mut self.state());
        self.0.changed.send_replace(());
        result
    }

    /// Reads the state, without waking anybody.
    pub(crate) fn look<R>(&self, read: impl FnOnce(&mut SimState) -> R) -> R {
        read(&mut self.state())
    }

    /// Waits until `condition` is done.
    pub(crate) async fn wait<T>(&self, mut condition: impl FnMut(&mut SimState) -> Wait<T>) -> T {
        let mut changed = self.0.changed.subscribe();
        loop {
            let until = match self.look(&mut condition) {
                Wait::Done(value) => return value,
                Wait::Until(at) => Some(self.look(|state| state.clock.instant(at))),
                Wait::ForChange => None,
            };
            // The sender is in `self`, so this cannot fail.
            let change = changed.changed();
            match until {
                None => {
                    let _ = change.await;
                }
                Some(until) => {
                    tokio::select! {
                        _ = change => {}
                        () = sleep_until(until) => {}
                    }
                }
            }
        }
    }

    /// The state, after all exits that are due by now.
    fn state(&self) -> MutexGuard<'_, SimState> {
        let mut state = self.0.state.lock();
        state.process_due_exits();
        state
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}
