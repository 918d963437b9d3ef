//! Tests of inspections that end.

use rubelet_cri::CriErrorKind;
use rubelet_node_state::{clock::Clock, heartbeat::Heartbeat, metrics::NodeMetrics};
use rubelet_sim::Sim;

use super::*;
use crate::{PID_QUERY_IDLE, PlegSettings, tests::seen_container};

fn pleg() -> (PlegTask, PlegHandle) {
    let settings = PlegSettings {
        relist_period: Duration::from_secs(1),
        events: false,
        pid_query_idle: PID_QUERY_IDLE,
    };
    let (runtime, metrics) = (Sim::new().runtime(), NodeMetrics::new());
    PlegTask::new(
        runtime,
        settings,
        None,
        Heartbeat::new(),
        Clock::system(),
        metrics,
    )
}

fn running() -> InspectionResult {
    let started_at = Timestamp::UNIX_EPOCH;
    let container = seen_container("c", ContainerPhase::Running { started_at });
    InspectionResult {
        pod: ObservedPod {
            containers: vec![container],
            ..ObservedPod::default()
        },
        processes: Vec::new(),
    }
}

#[tokio::test]
async fn an_inspection_that_ends_after_its_pod_was_removed_leaves_nothing_behind() {
    for (result, forgotten) in [
        (Ok(running()), false),
        (Ok(running()), true),
        (Err(()), false),
        (Err(()), true),
    ] {
        let (mut pleg, handle) = pleg();
        let uid = "u".into();
        let tracked = handle.track(&uid);
        handle.mark(&uid);
        assert!(handle.shared.next_ready().is_some());
        if forgotten {
            handle.forget(&uid);
        }
        let kind = CriErrorKind::DeadlineExceeded(Duration::from_secs(10));
        let error = |()| CriError::new("ContainerStatus", kind, "");
        let found = result.is_ok();
        pleg.finish(FinishedInspection {
            tracked,
            began: handle.now(),
            request: InspectionRequest::default(),
            result: Some(result.map_err(error)),
        });
        let shared = &handle.shared;
        let in_index = shared.index.lock().pod("c").is_some();
        assert_eq!(in_index, found && !forgotten);
        let counted = shared
            .counts
            .lock()
            .containers()
            .iter()
            .any(|(_, of)| *of > 0);
        assert_eq!(counted, found && !forgotten);
        let in_quarantine = handle.quarantine().borrow().contains_key(&uid);
        assert_eq!(in_quarantine, !found && !forgotten);
        let kept = if forgotten { 0 } else { 1 };
        assert_eq!(shared.queue.lock().len(), kept);
    }
}
