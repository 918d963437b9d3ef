//! `status.phase` (kubelet: `getPhase`).

use rubelet_api::{
    container::Container,
    pod::{PodSpec, RestartPolicy},
    status::{ContainerState, ContainerStatus, Phase},
};

use super::containers::RESTARTING_ALL;
use crate::actions::should_restart;

/// The input of the phase.
pub(super) struct PhaseInputs<'a> {
    pub(super) spec: &'a PodSpec,
    pub(super) init_containers: &'a [ContainerStatus],
    pub(super) containers: &'a [ContainerStatus],
    /// A regular container was created in the current sandbox: the pod was initialized.
    pub(super) initialized: bool,
    /// All containers are being restarted: none has terminated permanently.
    pub(super) restarting_all: bool,
    /// The pod is terminating, and its source is the API server, which needs the final phase.
    pub(super) terminating: bool,
}

#[derive(Default)]
struct Counts {
    failed_init: usize,
    pending_init: usize,
    pending_sidecars: usize,
    running: usize,
    waiting: usize,
    stopped: usize,
    succeeded: usize,
    restartable: usize,
}

/// The phase that follows from the container states.
pub(super) fn of(facts: &PhaseInputs<'_>) -> Phase {
    let mut counts = Counts::default();
    let spec = facts.spec;
    for container in &spec.init_containers {
        let status = find(facts.init_containers, container);
        if container.restart_policy == Some(RestartPolicy::Always) {
            counts.sidecar(status);
        } else {
            counts.init(facts, container, status);
        }
    }
    for container in &spec.containers {
        counts.regular(facts, container, find(facts.containers, container));
    }
    let pending_sidecar = counts.pending_sidecars > 0 && !facts.initialized;
    if counts.failed_init > 0 {
        Phase::Failed
    } else if counts.pending_init > 0 || pending_sidecar || counts.waiting > 0 {
        Phase::Pending
    } else if counts.running > 0 {
        Phase::Running
    } else if counts.stopped > 0 {
        if !facts.terminating && counts.restartable > 0 {
            Phase::Running
        } else if counts.stopped == counts.succeeded {
            Phase::Succeeded
        } else {
            Phase::Failed
        }
    } else {
        Phase::Pending
    }
}

fn find<'a>(list: &'a [ContainerStatus], container: &Container) -> Option<&'a ContainerStatus> {
    list.iter().find(|status| status.name == container.name)
}

impl Counts {
    fn init(
        &mut self,
        facts: &PhaseInputs<'_>,
        container: &Container,
        status: Option<&ContainerStatus>,
    ) {
        let Some(status) = status else {
            self.pending_init += 1;
            return;
        };
        match (&status.state, &status.last_state) {
            // A container that waits for its restart counts by its last exit.
            (ContainerState::Terminated(end), _) | (ContainerState::Waiting { .. }, Some(end)) => {
                let restarts = restartable(facts, container, end.exit_code, &end.reason);
                self.failed_init += usize::from(end.exit_code != 0 && !restarts);
            }
            _ => self.pending_init += 1,
        }
    }

    fn sidecar(&mut self, status: Option<&ContainerStatus>) {
        match status.map(|status| (&status.state, &status.last_state, status.started)) {
            Some((ContainerState::Running { .. }, _, started)) => {
                self.pending_sidecars += usize::from(!started);
                self.running += 1;
            }
            // Terminated sidecars do not count.
            Some((ContainerState::Terminated(_), ..) | (_, Some(_), _)) => {}
            Some((ContainerState::Waiting { .. }, None, _)) | None => {
                self.pending_sidecars += 1;
                self.waiting += 1;
            }
        }
    }

    fn regular(
        &mut self,
        facts: &PhaseInputs<'_>,
        container: &Container,
        status: Option<&ContainerStatus>,
    ) {
        match status.map(|status| (&status.state, &status.last_state)) {
            Some((ContainerState::Running { .. }, _)) => self.running += 1,
            Some((ContainerState::Terminated(end), _)) => {
                self.stopped += 1;
                self.succeeded += usize::from(end.exit_code == 0);
                let restarts = restartable(facts, container, end.exit_code, &end.reason);
                self.restartable += usize::from(restarts);
            }
            Some((ContainerState::Waiting { reason, .. }, Some(end))) => {
                self.stopped += 1;
                let restarts = restartable(facts, container, end.exit_code, &end.reason)
                    || &**reason == RESTARTING_ALL;
                self.restartable += usize::from(restarts);
            }
            Some((ContainerState::Waiting { .. }, None)) | None => self.waiting += 1,
        }
    }
}

fn restartable(
    facts: &PhaseInputs<'_>,
    container: &Container,
    exit_code: i32,
    reason: &str,
) -> bool {
    facts.restarting_all
        || reason == RESTARTING_ALL
        || should_restart(container, facts.spec.restart_policy, exit_code)
}
