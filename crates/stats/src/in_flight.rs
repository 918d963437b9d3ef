//! A source of numbers that may hang: a call to the runtime, or a file system. At most one call is in
//! flight, and only the first request waits for one that hangs.

use std::time::Duration;

use tokio::{task::JoinHandle, time::timeout};

/// A source, and its call in flight.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    running: Option<JoinHandle<T>>,
    /// Whether a request gave up waiting for the call in flight.
    hangs: bool,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self {
            running: None,
            hangs: false,
        }
    }
}

impl<T> InFlight<T> {
    /// Starts a call if none is in flight. Nobody waits for its value.
    pub(crate) fn begin(&mut self, start: impl FnOnce() -> JoinHandle<T>) {
        if self.running.as_ref().is_none_or(JoinHandle::is_finished) {
            self.running = Some(start());
            self.hangs = false;
        }
    }

    /// The value of a new call; `None` if there is none within `patience`, if an earlier call still
    /// hangs, or if the call panicked. The call goes on when nobody waits for it any more.
    ///
    /// Cancel safety: the call stays in `running`, where the next request finds it.
    pub(crate) async fn ask(
        &mut self,
        patience: Duration,
        start: impl FnOnce() -> JoinHandle<T>,
    ) -> Option<T> {
        // A result that nobody waited for is old.
        if self.running.as_ref().is_some_and(JoinHandle::is_finished) {
            self.running = None;
        }
        if self.running.is_some() && self.hangs {
            return None;
        }
        let call = self.running.get_or_insert_with(start);
        self.hangs = false;
        match timeout(patience, call).await {
            Ok(value) => {
                self.running = None;
                value.ok()
            }
            Err(_) => {
                self.hangs = true;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::{sync::oneshot, time::Instant};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_delays_one_request_and_is_not_repeated() {
        let (answer, answered) = oneshot::channel::<u32>();
        let mut source = InFlight::default();
        let began = Instant::now();
        let hangs = || tokio::spawn(async { answered.await.unwrap_or(0) });
        assert_eq!(source.ask(PATIENCE, hangs).await, None);
        assert_eq!(began.elapsed(), PATIENCE);
        let again = || -> JoinHandle<u32> { panic!("the call is in flight") };
        assert_eq!(source.ask(PATIENCE, again).await, None);
        assert_eq!(began.elapsed(), PATIENCE);
        // Its late answer is old; the next request asks again.
        answer.send(1).unwrap();
        tokio::task::yield_now().await;
        let next = || tokio::spawn(async { 2 });
        assert_eq!(source.ask(PATIENCE, next).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_goes_away_leaves_its_call_to_the_next() {
        let (answer, answered) = oneshot::channel::<u32>();
        let mut source = InFlight::default();
        let call = || tokio::spawn(async { answered.await.unwrap_or(0) });
        let gone = timeout(Duration::from_millis(1), source.ask(PATIENCE, call)).await;
        assert!(gone.is_err());
        answer.send(1).unwrap();
        let next = || tokio::spawn(async { 2 });
        let found = source.ask(PATIENCE, next).await;
        assert!(matches!(found, Some(1 | 2)), "{found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_costs_its_own_numbers() {
        let mut source = InFlight::default();
        let fails = || tokio::spawn(async { "x".parse().expect("a bug") });
        assert_eq!(source.ask(PATIENCE, fails).await, None::<u32>);
        let works = || tokio::spawn(async { 1 });
        assert_eq!(source.ask(PATIENCE, works).await, Some(1));
        let never = || tokio::spawn(pending());
        assert_eq!(source.ask(PATIENCE, never).await, None);
    }
}
