//! Calls to the runtime that must not be interrupted: a runtime treats a start whose caller has
//! disconnected as failed, and containerd may keep a container that it can never remove.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinSet,
    time::timeout,
};

/// Number of permits, more than there are ever calls at the same time.
const CALLS: u32 = 1 << 20;

/// Runs such calls, and waits for them before the agent stops. Cheap to clone; calls are aborted
/// with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct Drain(Arc<DrainState>);

#[derive(Debug)]
struct DrainState {
    permits: Arc<Semaphore>,
    detached: Mutex<JoinSet<()>>,
}

impl Drain {
    /// Accepts calls until [`Self::shut`].
    #[must_use]
    pub(crate) fn new() -> Self {
        Self(Arc::new(DrainState {
            permits: Arc::new(Semaphore::new(CALLS as usize)),
            detached: Mutex::default(),
        }))
    }

    /// Runs a call, which never begins once the agent stops. Dropping the future aborts the call.
    pub(crate) async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        let Ok(_permit) = self.0.permits.acquire().await else {
            return std::future::pending().await;
        };
        call.await
    }

    /// Runs a call that continues to its end even if the returned future is dropped.
    ///
    /// # Panics
    /// The call panicked.
    pub(crate) async fn run_to_end<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let permits = Arc::clone(&self.0.permits);
        let Ok(permit) = permits.acquire_owned().await else {
            return std::future::pending().await;
        };
        let (sender, result) = oneshot::channel();
        {
            let mut calls = self.0.detached.lock();
            // A JoinSet keeps ended tasks until they are joined.
            while calls.try_join_next().is_some() {}
            calls.spawn(async move {
                let value = call.await;
                drop(permit);
                // The caller may have stopped waiting.
                let _ = sender.send(value);
            });
        }
        result
            .await
            .expect("a call to the runtime returns a result")
    }

    /// Accepts no further calls, and waits at most `limit` until the calls in progress have ended.
    pub(crate) async fn shut(&self, limit: Duration) {
        // Waiters are served in order, so later calls do not begin. Neither this place in the queue
        // nor the permits are released before the semaphore is closed: otherwise another thread
        // would let the next call begin at that moment.
        let mut all_ended = pin!(self.0.permits.acquire_many(CALLS));
        let ended = timeout(limit, all_ended.as_mut()).await;
        self.0.permits.close();
        // Also after a timeout: the agent stops.
        drop(ended);
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
