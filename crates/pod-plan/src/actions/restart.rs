//! Restart policies, restart rules and requested restarts of containers.

use rubelet_api::{
    container::{Container, RestartAction},
    pod::RestartPolicy,
};

use crate::{observed::ContainerPhase, snapshot::PodSnapshot};

/// The effective restart policy of a container: its own, else the pod's.
#[must_use]
pub(crate) fn policy_of(container: &Container, pod: RestartPolicy) -> RestartPolicy {
    container.restart_policy.unwrap_or(pod)
}

/// Applies restart rules and policy to an exit code (kubelet: `ContainerShouldRestart`).
#[must_use]
pub fn should_restart(container: &Container, pod: RestartPolicy, exit_code: i32) -> bool {
    if container.restart_policy.is_some() && container.matching_rule(exit_code).is_some() {
        return true;
    }
    match policy_of(container, pod) {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => exit_code != 0,
        RestartPolicy::Never => false,
    }
}

/// True if this exit code restarts all containers of the pod in place (KEP-5532).
#[must_use]
pub(crate) fn restarts_all(container: &Container, exit_code: i32) -> bool {
    container.restart_policy.is_some()
        && container.matching_rule(exit_code) == Some(RestartAction::RestartAllContainers)
}

/// True if an operator requested to restart the newest instance of this container.
#[must_use]
pub(crate) fn restart_requested(snapshot: &PodSnapshot<'_>, name: &str) -> bool {
    let Some(intent) = snapshot.intents.restarts.get(name) else {
        return false;
    };
    let newest = snapshot.observed.newest(name);
    match (&intent.instance, newest) {
        (Some(instance), Some(found)) => {
            found.id == *instance && !matches!(found.phase, ContainerPhase::Created)
        }
        _ => false,
    }
}
