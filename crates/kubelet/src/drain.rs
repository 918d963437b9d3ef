//! Calls to the runtime that must not be broken off: a runtime takes a start whose caller went away
//! for one that failed, and containerd may even keep what it can never remove again.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinSet,
    time::timeout,
};

/// More calls than there will ever be at the same time.
const CALLS: u32 = 1 << 20;

/// The door to such calls. Cheap to clone; calls end with the last clone.
#[derive(Debug, Clone)]
pub struct Drain(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    permits: Arc<Semaphore>,
    detached: Mutex<JoinSet<()>>,
}

impl Drain {
    /// An open door.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            permits: Arc::new(Semaphore::new(CALLS as usize)),
            detached: Mutex::default(),
        }))
    }

    /// Runs a call; it never begins once the agent stops. Whoever stops waiting for it breaks it
    /// off.
    pub async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        let Ok(_under_way) = self.0.permits.acquire().await else {
            return std::future::pending().await;
        };
        call.await
    }

    /// Runs a call that goes on to its end even if nobody waits for its answer any more.
    ///
    /// # Panics
    /// The call panicked.
    pub async fn run_to_end<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let permits = Arc::clone(&self.0.permits);
        let Ok(under_way) = permits.acquire_owned().await else {
            return std::future::pending().await;
        };
        let (answer, answered) = oneshot::channel();
        {
            let mut calls = self
                .0
                .detached
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
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

    /// Shuts the door and waits until the calls that are under way have ended, but not longer than
    /// `limit`.
    pub async fn shut(&self, limit: Duration) {
        // Waiters are served in order: whoever comes later does not get in any more. Neither this
        // place in the queue nor the permits may be given up before the door is shut: another
        // thread would let the next one in at that very moment.
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
mod tests {
    use std::{
        pin::Pin,
        sync::atomic::{AtomicBool, Ordering},
        task::{Context, Wake, Waker},
    };

    use tokio::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn stopping_waits_for_calls_under_way_and_lets_no_other_begin() {
        let drain = Drain::new();
        let (end, ended) = oneshot::channel::<()>();
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

    /// A task that goes on at the very moment at which it is woken, as on a thread of its own.
    struct AtOnce(Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>);

    impl AtOnce {
        fn poll(self: &Arc<Self>) {
            let waker = Waker::from(Arc::clone(self));
            let mut task = self.0.lock().unwrap();
            let _ = task.as_mut().poll(&mut Context::from_waker(&waker));
        }
    }

    impl Wake for AtOnce {
        fn wake(self: Arc<Self>) {
            self.poll();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_does_not_slip_in_before_the_door_is_shut() {
        for hangs in [false, true] {
            let drain = Drain::new();
            let (end, ended) = oneshot::channel::<()>();
            let call = tokio::spawn({
                let drain = drain.clone();
                async move { drain.run(ended).await.is_ok() }
            });
            tokio::task::yield_now().await;
            let mut shut = pin!(drain.shut(LIMIT));
            let waits = timeout(Duration::ZERO, shut.as_mut()).await;
            assert!(waits.is_err());
            let began = Arc::new(AtomicBool::new(false));
            let late = {
                let (drain, began) = (drain.clone(), Arc::clone(&began));
                async move {
                    let call = async { began.store(true, Ordering::SeqCst) };
                    drain.run(call).await;
                }
            };
            Arc::new(AtOnce(Mutex::new(Box::pin(late)))).poll();
            if !hangs {
                end.send(()).unwrap();
                assert!(call.await.unwrap());
            }
            shut.await;
            assert!(!began.load(Ordering::SeqCst), "hangs: {hangs}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_goes_on_without_whoever_waited_for_it_until_the_agent_is_gone() {
        let drain = Drain::new();
        let (done, is_done) = oneshot::channel();
        let call = drain.run_to_end(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            done.send(()).unwrap();
        });
        assert!(timeout(Duration::from_secs(1), call).await.is_err());
        is_done.await.unwrap();

        let (done, is_done) = oneshot::channel::<()>();
        let call = drain.run_to_end(async move {
            std::future::pending::<()>().await;
            drop(done);
        });
        assert!(timeout(Duration::from_secs(1), call).await.is_err());
        drop(drain);
        assert!(is_done.await.is_err(), "nothing outlives the agent");
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
