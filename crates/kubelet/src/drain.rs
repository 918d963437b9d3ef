//! What must not be broken off when the agent stops in order: calls that make or start something in
//! the runtime. A runtime takes a start that is broken off for one that failed.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

/// More calls than there will ever be at the same time.
const CALLS: u32 = 1 << 20;

/// The door to such calls. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Drain(Arc<Semaphore>);

impl Drain {
    /// An open door.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(CALLS as usize)))
    }

    /// Runs a call to its end; it never begins once the agent stops.
    pub async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        let Ok(_under_way) = self.0.acquire().await else {
            return std::future::pending().await;
        };
        call.await
    }

    /// Shuts the door and waits until the calls that are under way have ended, but not longer than
    /// `limit`.
    pub async fn shut(&self, limit: Duration) {
        // Waiters are served in order: whoever comes later does not get in any more.
        let all_ended = timeout(limit, self.0.acquire_many(CALLS));
        // Either way nothing more can be done: the agent stops.
        let _ = all_ended.await;
        self.0.close();
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn stopping_waits_for_calls_under_way_and_lets_no_other_begin() {
        let drain = Drain::new();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let call = tokio::spawn({
            let drain = drain.clone();
            async move { drain.run(ended).await.is_ok() }
        });
        tokio::task::yield_now().await;
        let shut = tokio::spawn({
            let drain = drain.clone();
            async move { drain.shut(LIMIT).await }
        });
        tokio::task::yield_now().await;
        assert!(!shut.is_finished());
        let late = timeout(Duration::from_secs(1), drain.run(async {})).await;
        assert!(late.is_err());
        end.send(()).unwrap();
        assert!(call.await.unwrap());
        shut.await.unwrap();
        let late = timeout(LIMIT, drain.run(async {})).await;
        assert!(late.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_is_not_waited_for_for_ever() {
        let drain = Drain::new();
        let hung = drain.run(std::future::pending::<()>());
        let start = Instant::now();
        tokio::select! {
            biased;
            () = hung => unreachable!("it hangs"),
            () = drain.shut(LIMIT) => {}
        }
        assert_eq!(start.elapsed(), LIMIT);
    }
}
