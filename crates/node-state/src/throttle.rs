//! A limit on concurrent calls to the runtime. More concurrency does not complete them sooner: each
//! sandbox costs processes and locks of the runtime.

use std::{future::Future, pin::pin, time::Duration};

use tokio::{sync::Semaphore, time::sleep};

/// A call that takes longer no longer counts: a call that hangs must not delay other pods.
const SLOW: Duration = Duration::from_secs(2);

/// Limits the number of concurrent calls.
#[derive(Debug)]
pub struct Throttle {
    permits: Semaphore,
}

impl Throttle {
    /// At most `at_once` concurrent calls, not counting slow ones.
    #[must_use]
    pub fn new(at_once: usize) -> Self {
        Self {
            permits: Semaphore::new(at_once.max(1)),
        }
    }

    /// Waits for a permit and runs the call.
    pub async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        self.run_counting(SLOW, call).await
    }

    /// Waits for a permit and runs a call that may be idle for long: it counts only for the
    /// duration `busy`.
    pub async fn run_counting<T>(&self, busy: Duration, call: impl Future<Output = T>) -> T {
        // The semaphore is never closed.
        let permit = self.permits.acquire().await.ok();
        let mut call = pin!(call);
        tokio::select! {
            biased;
            value = &mut call => return value,
            () = sleep(busy) => drop(permit),
        }
        call.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_run_at_once_and_a_hung_one_does_not_count() {
        let throttle = Throttle::new(2);
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let quick = || {
            throttle.run(async {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(10)).await;
                running.fetch_sub(1, Ordering::SeqCst);
            })
        };
        join_all((0..10).map(|_| quick())).await;
        assert_eq!(most.load(Ordering::SeqCst), 2);

        let hung = || throttle.run(std::future::pending::<()>());
        tokio::select! {
            _ = futures_util::future::join(hung(), hung()) => unreachable!("they hang"),
            () = quick() => {}
        }
    }
}
