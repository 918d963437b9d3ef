//! A bound on work that the runtime does at the same time. More of it at once does not end sooner:
//! each sandbox costs processes and locks of the runtime.

use std::{future::Future, pin::pin, time::Duration};

use tokio::{
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};

/// Work that takes longer than this no longer counts: a call that hangs must not hold up the
/// other pods.
const SLOW: Duration = Duration::from_secs(2);

/// Lets a number of calls through at the same time.
#[derive(Debug)]
pub struct Throttle {
    permits: Semaphore,
    /// Calls that wait for a turn or have one.
    wanted: watch::Sender<usize>,
}

impl Throttle {
    /// At most `at_once` calls, and those that turned out to be slow.
    #[must_use]
    pub fn new(at_once: usize) -> Self {
        Self {
            permits: Semaphore::new(at_once.max(1)),
            wanted: watch::Sender::new(0),
        }
    }

    /// Waits for a turn and runs the call.
    pub async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        self.run_counting(SLOW, call).await
    }

    /// Waits for a turn and runs a call that may well take long without doing anything: it counts
    /// for the time of `busy` only.
    pub async fn run_counting<T>(&self, busy: Duration, call: impl Future<Output = T>) -> T {
        let wanted = Wanted::new(&self.wanted);
        // The semaphore is never closed.
        let permit = self.permits.acquire().await.ok();
        let mut call = pin!(call);
        tokio::select! {
            biased;
            value = &mut call => return value,
            () = sleep(busy) => drop((permit, wanted)),
        }
        call.await
    }

    /// Waits until no call waits for a turn or has one, but not longer than `limit`: for work that
    /// can wait while there is other work.
    pub async fn until_idle(&self, limit: Duration) {
        let mut wanted = self.wanted.subscribe();
        // Either way the work is done now.
        let _ = timeout(limit, wanted.wait_for(|calls| *calls == 0)).await;
    }
}

/// One call that waits for a turn or has one.
struct Wanted<'a>(&'a watch::Sender<usize>);

impl<'a> Wanted<'a> {
    fn new(calls: &'a watch::Sender<usize>) -> Self {
        calls.send_modify(|calls| *calls += 1);
        Self(calls)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
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

    #[tokio::test(start_paused = true)]
    async fn what_can_wait_waits_for_other_calls_but_not_for_ever() {
        const LIMIT: Duration = Duration::from_secs(5);
        let throttle = Throttle::new(1);
        let call = |seconds| throttle.run(async move { sleep(Duration::from_secs(seconds)).await });
        let waited = || async {
            // The calls come first.
            tokio::task::yield_now().await;
            let start = tokio::time::Instant::now();
            throttle.until_idle(LIMIT).await;
            start.elapsed().as_secs()
        };
        let (.., nothing) = tokio::join!(async {}, waited());
        assert_eq!(nothing, 0);
        let (.., one_after_the_other) = tokio::join!(call(1), call(1), waited());
        assert_eq!(one_after_the_other, 2);
        let (.., hung) = tokio::join!(call(100), waited());
        assert_eq!(hung, SLOW.as_secs(), "one that hangs does not count");
        let (.., busy) = tokio::join!(call(2), call(2), call(2), waited());
        assert_eq!(busy, LIMIT.as_secs());
    }
}
