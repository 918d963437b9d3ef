//! `status.phase` (kubelet: `getPhase`).

use rubelet_api::{
    pod::{PodSpec, RestartPolicy},
    status::{ContainerState, ContainerStatus, Phase},
};

use crate::actions::should_restart;

/// The phase that follows from the container states.
pub(super) fn of(
    spec: &PodSpec,
    init_containers: &[ContainerStatus],
    containers: &[ContainerStatus],
) -> Phase {
    let (mut pending_init, mut failed_init) = (0, 0);
    for status in init_containers {
        match (&status.state, &status.last_state) {
            (ContainerState::Terminated(end), _) if end.exit_code != 0 => {
                if should_restart(spec.restart_policy, end.exit_code) {
                    pending_init += 1;
                } else {
                    failed_init += 1;
                }
            }
            (ContainerState::Terminated(_), _) => {}
            _ => pending_init += 1,
        }
    }
    let (mut running, mut stopped, mut succeeded, mut waiting, mut restartable) = (0, 0, 0, 0, 0);
    for status in containers {
        match (&status.state, &status.last_state) {
            (ContainerState::Running { .. }, _) => running += 1,
            (ContainerState::Terminated(end), _) => {
                stopped += 1;
                succeeded += usize::from(end.exit_code == 0);
                restartable += usize::from(should_restart(spec.restart_policy, end.exit_code));
            }
            (ContainerState::Waiting { .. }, Some(end)) => {
                stopped += 1;
                restartable += usize::from(should_restart(spec.restart_policy, end.exit_code));
            }
            (ContainerState::Waiting { .. }, None) => waiting += 1,
        }
    }
    if failed_init > 0 {
        Phase::Failed
    } else if pending_init > 0 || waiting > 0 {
        Phase::Pending
    } else if running > 0 {
        Phase::Running
    } else if stopped > 0 {
        if spec.restart_policy == RestartPolicy::Always || restartable > 0 {
            Phase::Running
        } else if stopped == succeeded {
            Phase::Succeeded
        } else {
            Phase::Failed
        }
    } else {
        Phase::Pending
    }
}
