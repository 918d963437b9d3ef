//! Pods that do not end within their grace period (kubelet: `killPodNow`).

use std::time::Duration;

use rubelet_api::pod::Pod;
use rubelet_node_state::events::{EventType, Recorder};

/// Shortest time after which a pod that still terminates is reported.
const SHORTEST_REPORT: Duration = Duration::from_secs(10);

/// How long after it was told to end a pod with this grace period is reported.
pub(crate) fn report_after(grace: Duration) -> Duration {
    SHORTEST_REPORT.max(grace.mul_f32(1.5))
}

/// Records the event of a pod that still terminates.
pub(crate) fn report(recorder: &Recorder, pod: &Pod) {
    recorder.pod(
        pod,
        None,
        EventType::Warning,
        "ExceededGracePeriod",
        "Container runtime did not kill the pod within specified grace period.",
    );
}
