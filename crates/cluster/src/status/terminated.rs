//! The last status of a pod of the API server that is gone from the host (kubelet: `TerminatePod`).

use rubelet_api::{
    pod::{Pod, PodSource},
    status::{Phase, PodStatus},
};
use rubelet_pod_plan::status::end_containers;

/// Completes the status of a finished pod: a terminal phase, because only then may it be deleted, and the exit of each
/// container that was started.
pub(super) fn terminated(pod: &Pod, status: &PodStatus) -> PodStatus {
    let mut status = status.clone();
    if pod.source != PodSource::Api {
        return status;
    }
    end_containers(
        &pod.spec,
        &mut status.init_containers,
        &mut status.containers,
    );
    if !status.phase.is_terminal() {
        status.phase = Phase::Failed;
    }
    status
}
