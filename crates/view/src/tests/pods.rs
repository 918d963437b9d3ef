//! Pods as clients see them.

use rubelet_api::status::ContainerState;
use rubelet_pod_plan::PlanReason;
use serde_json::{Value, json};

use super::fixture::{TestView, at, entry};

fn waiting(reason: &str) -> ContainerState {
    ContainerState::Waiting {
        reason: reason.into(),
        message: "".into(),
    }
}

fn next_try(pod: &Value) -> Option<Value> {
    let text = pod["metadata"]["annotations"]["rubelet.dev/next-try"].as_str()?;
    Some(serde_json::from_str(text).unwrap())
}

#[tokio::test(start_paused = true)]
async fn identifiers_of_containers_carry_the_runtimes_name() {
    let seen = TestView::new();
    seen.put(entry()).await;
    let pod = seen.pod();
    let id = |list: &str, index: usize| pod["status"][list][index]["containerID"].clone();
    assert_eq!(id("containerStatuses", 1), "containerd://web-0");
    assert_eq!(id("initContainerStatuses", 0), "containerd://setup-0");
    let end = &pod["status"]["initContainerStatuses"][0]["state"]["terminated"];
    assert_eq!(end["containerID"], "containerd://setup-0");
    assert_eq!(next_try(&pod), None);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_next_try_is_an_annotation() {
    let seen = TestView::new();
    let mut crashing = entry();
    crashing.status.containers[1].state = waiting("CrashLoopBackOff");
    crashing.why = vec![
        PlanReason::BackOff("web".into(), at("2026-03-01T12:00:38.2Z")),
        PlanReason::Converged,
    ];
    seen.put(crashing).await;
    assert_eq!(
        next_try(&seen.pod()),
        Some(json!({ "web": "2026-03-01T12:00:39Z" }))
    );
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_can_not_be_made_keeps_all_containers_waiting() {
    let seen = TestView::new();
    let mut stuck = entry();
    for status in &mut stuck.status.containers {
        status.state = waiting("ContainerCreating");
    }
    stuck.why = vec![
        PlanReason::NoSandbox,
        PlanReason::SandboxRetry(at("2026-03-01T12:00:04Z")),
    ];
    seen.put(stuck).await;
    assert_eq!(
        next_try(&seen.pod()),
        Some(json!({ "web": "2026-03-01T12:00:04Z", "side": "2026-03-01T12:00:04Z" }))
    );
}
