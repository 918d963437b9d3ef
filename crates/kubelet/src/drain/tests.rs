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

/// A task that continues at the very moment at which it is woken, as on a thread of its own.
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
