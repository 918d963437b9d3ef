//! Tests of `drain`.

use std::{
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Wake, Waker},
};

use tokio::time::Instant;

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn stop_waits_for_calls_in_flight_and_admits_no_new_ones() {
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

/// A task that is polled by its own wake-up, as if another thread ran it at that moment.
struct AtOnce(Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl AtOnce {
    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut task = self.0.lock();
        let _ = task.as_mut().poll(&mut Context::from_waker(&waker));
    }
}

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_does_not_begin_before_the_drain_is_shut() {
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
async fn a_call_continues_without_its_caller_until_the_agent_is_gone() {
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
async fn a_hung_call_delays_the_stop_no_longer_than_the_limit() {
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
