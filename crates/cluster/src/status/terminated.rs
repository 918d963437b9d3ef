//! The last status of a pod of the API server that is gone from the host (kubelet: `TerminatePod`).

use rubelet_api::{
    pod::{Pod, PodSource},
    status::{ContainerState, ContainerStatus, Phase, PodStatus, Terminated},
};

/// Completes the status of a finished pod: a terminal phase, because only then may it be deleted,
/// and the exit of each container that was started. An exit that was not observed counts as a
/// failure.
pub(super) fn terminated(pod: &Pod, status: &PodStatus) -> PodStatus {
    let mut status = status.clone();
    if pod.source != PodSource::Api {
        return status;
    }
    if is_initialized(pod, &status) {
        status.containers.iter_mut().for_each(end);
    }
    let started = started(&status.init_containers);
    status
        .init_containers
        .iter_mut()
        .take(started)
        .for_each(end);
    if !status.phase.is_terminal() {
        status.phase = Phase::Failed;
    }
    status
}

fn end(container: &mut ContainerStatus) {
    if matches!(container.state, ContainerState::Terminated(_)) {
        return;
    }
    container.ready = false;
    container.started = false;
    container.state = ContainerState::Terminated(Terminated {
        exit_code: 137,
        reason: "ContainerStatusUnknown".into(),
        message: "The container could not be located when the pod was terminated".into(),
        started_at: None,
        finished_at: None,
        container_id: "".into(),
    });
}

/// True unless init containers kept the regular ones from being started.
fn is_initialized(pod: &Pod, status: &PodStatus) -> bool {
    let was_started = |one: &ContainerStatus| {
        one.last_state.is_some() || !matches!(one.state, ContainerState::Waiting { .. })
    };
    if pod.spec.init_containers.is_empty() || status.containers.iter().any(was_started) {
        return true;
    }
    let Some(last) = status.init_containers.last() else {
        return false;
    };
    if pod.spec.sidecar(&last.name).is_some() {
        return matches!(last.state, ContainerState::Running { .. }) && last.started;
    }
    let now = match &last.state {
        ContainerState::Terminated(ended) => Some(ended),
        _ => None,
    };
    let mut ends = now.into_iter().chain(&last.last_state);
    ends.any(|ended| ended.exit_code == 0)
}

/// Number of init containers that were tried; the first one always was.
fn started(init_containers: &[ContainerStatus]) -> usize {
    let tried = |one: &ContainerStatus| {
        one.last_state.is_some() || !matches!(one.state, ContainerState::Waiting { .. })
    };
    let last = init_containers.iter().rposition(tried).unwrap_or_default();
    (last + 1).min(init_containers.len())
}
