//! Calls to the runtime that must not be interrupted: a runtime treats a start whose caller went
//! away as failed, and containerd may even keep what it can never remove again.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinSet,
    time::timeout,
};

/// More calls than there will ever be at the same time.
const CALLS: u32 = 1 << 20;

/// The door to such calls. Cheap to clone; calls end with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct Drain(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    permits: Arc<Semaphore>,
    detached: Mutex<JoinSet<()>>,
}

impl Drain {
    /// An open door.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            permits: Arc::new(Semaphore::new(CALLS as usize)),
            detached: Mutex::default(),
        }))
    }

    /// Runs a call; it never begins once the agent stops. Whoever stops waiting for it breaks it
    /// off.
    pub(crate) async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        let Ok(_under_way) = self.0.permits.acquire().await else {
            return std::future::pending().await;
        };
        call.await
    }

    /// Runs a call that continues to its end even if nobody waits for its answer any more.
    ///
    /// # Panics
    /// The call panicked.
    pub(crate) async fn run_to_end<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let permits = Arc::clone(&self.0.permits);
        let Ok(under_way) = permits.acquire_owned().await else {
            return std::future::pending().await;
        };
        let (answer, answered) = oneshot::channel();
        {
            let mut calls = self.0.detached.lock();
            // A JoinSet keeps ended tasks until they are joined.
            while calls.try_join_next().is_some() {}
            calls.spawn(async move {
                let value = call.await;
                drop(under_way);
                // Perhaps nobody waits any more.
                let _ = answer.send(value);
            });
        }
        answered
            .await
            .expect("a call to the runtime ends with an answer")
    }

    /// Closes the semaphore and waits until the calls that are under way have ended, but not longer
    /// than `limit`.
    pub(crate) async fn shut(&self, limit: Duration) {
        // Waiters are served in order, so whoever comes later does not get in any more. Release
        // neither this place in the queue nor the permits before the semaphore is closed: another
        // thread would let the next one in at that moment.
        let mut all_ended = pin!(self.0.permits.acquire_many(CALLS));
        let ended = timeout(limit, all_ended.as_mut()).await;
        self.0.permits.close();
        // Either way nothing more can be done: the agent stops.
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
