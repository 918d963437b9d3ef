//! Tests of inspections within their slots.

use std::{future::pending, time::Duration};

use rubelet_node_state::{clock::Clock, metrics::NodeMetrics};
use tokio::time::sleep;

use super::*;
use crate::{InspectionCause, queue::SLOW_SLOTS};

fn handle() -> PlegHandle {
    PlegHandle::new(Duration::from_secs(1), Clock::system(), NodeMetrics::new())
}

/// Marks a pod, which is inspected next.
fn next(handle: &PlegHandle, uid: &str) -> (Arc<TrackedPod>, LatencyClass) {
    handle.mark(&uid.into());
    handle.shared.next_ready().expect("a slot is free")
}

#[tokio::test(start_paused = true)]
async fn a_slow_inspection_frees_its_fast_slot_or_is_cancelled() {
    let handle = handle();
    let shared = &handle.shared;
    let (soon, slot) = next(&handle, "soon");
    let result = shared.run_in_slot(&soon.uid, slot, async { 1 }).await;
    assert_eq!((result, slot), (Some(1), LatencyClass::Fast));

    let (late, slot) = next(&handle, "late");
    // What the marks left behind.
    shared.woken().await;
    let began = Instant::now();
    let long = async {
        sleep(SLOW * 5).await;
        2
    };
    let freed = async {
        shared.woken().await;
        began.elapsed()
    };
    let (result, freed) = tokio::join!(shared.run_in_slot(&late.uid, slot, long), freed);
    assert_eq!((result, freed), (Some(2), SLOW));

    // With that one, all slots for slow ones are taken.
    for number in 1..SLOW_SLOTS {
        let (slow, _) = next(&handle, &format!("slow-{number}"));
        assert!(shared.queue.lock().become_slow(&slow.uid));
    }
    let (more, slot) = next(&handle, "more");
    let began = Instant::now();
    let result = shared.run_in_slot(&more.uid, slot, pending::<()>()).await;
    assert_eq!((result, began.elapsed()), (None, SLOW));
    let end = |pod: &TrackedPod, outcome| {
        let mut queue = shared.queue.lock();
        queue.done(&pod.uid, outcome, Instant::now());
    };
    end(&more, InspectionOutcome::Aborted);
    assert!(shared.next_ready().is_none());
    let (began, recheck_at) = (handle.now(), None);
    end(&late, InspectionOutcome::Complete { began, recheck_at });
    let next = shared
        .next_ready()
        .map(|(pod, slot)| (pod.uid.clone(), slot));
    assert_eq!(next, Some((more.uid.clone(), LatencyClass::Slow)));
}

#[tokio::test]
async fn a_removed_pod_is_not_inspected_and_leaves_nothing_in_the_queue() {
    let handle = handle();
    let uid = PodUid::from("u");
    let tracked = handle.track(&uid);
    handle.mark(&uid);
    handle.forget(&uid);
    assert_eq!(handle.shared.queue.lock().len(), 0);
    // An event whose reader has found the record before.
    handle.mark_pod(&tracked, InspectionCause::Step, |_| {});
    assert_eq!(handle.shared.queue.lock().len(), 1);
    assert!(handle.shared.next_ready().is_none());
    assert_eq!(handle.shared.queue.lock().len(), 0);
}
