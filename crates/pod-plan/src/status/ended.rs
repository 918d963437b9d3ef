//! Containers of a pod that has ended whose own end was not observed (kubelet: `TerminatePod`).

use rubelet_api::{
    pod::PodSpec,
    status::{ContainerState, ContainerStatus},
};

use super::containers::lost;

/// Completes the statuses of a pod of which nothing runs any more: each container that was to run has an exit. One that
/// was not observed counts as a failure.
pub fn end_containers(
    spec: &PodSpec,
    init_containers: &mut [ContainerStatus],
    containers: &mut [ContainerStatus],
) {
    if is_initialized(spec, init_containers, containers) {
        containers.iter_mut().for_each(end);
    }
    let started = started(init_containers);
    init_containers.iter_mut().take(started).for_each(end);
}

fn end(container: &mut ContainerStatus) {
    if matches!(container.state, ContainerState::Terminated(_)) {
        return;
    }
    container.ready = false;
    container.started = false;
    container.state = ContainerState::Terminated(lost("", None));
}

/// Whether an instance of it was seen to run or end.
fn was_tried(container: &ContainerStatus) -> bool {
    container.last_state.is_some() || !matches!(container.state, ContainerState::Waiting { .. })
}

/// True unless init containers kept the regular ones from being started.
fn is_initialized(
    spec: &PodSpec,
    init_containers: &[ContainerStatus],
    containers: &[ContainerStatus],
) -> bool {
    if spec.init_containers.is_empty() || containers.iter().any(was_tried) {
        return true;
    }
    let Some(last) = init_containers.last() else {
        return false;
    };
    if spec.sidecar(&last.name).is_some() {
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
    let last = init_containers.iter().rposition(was_tried);
    let last = last.unwrap_or_default();
    (last + 1).min(init_containers.len())
}
