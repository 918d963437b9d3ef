//! Precreates the next instance of a container whose process has exited before the runtime reports
//! the exit, if it would be started at once whatever the exit code is.

use rubelet_api::{
    container::{Container, PullPolicy, RestartAction},
    pod::{Pod, RestartPolicy},
    volume::VolumeSource,
};
use rubelet_base::SandboxId;

use super::{builder::ActionsBuilder, restart::policy_of};
use crate::{
    observed::{ObservedContainer, ProcessState},
    reason::PlanReason,
    step::Step,
};

impl ActionsBuilder<'_> {
    /// Creates the successor of `found`, which the runtime reports as running, if a successor will
    /// certainly be started and may be created now.
    pub(super) fn precreate_container(
        &mut self,
        container: &Container,
        found: &ObservedContainer,
        sandbox: &SandboxId,
    ) {
        match found.process {
            ProcessState::AsReported => return,
            ProcessState::Lost => {
                self.why(PlanReason::ExitNotReported(
                    found.name.clone(),
                    found.id.clone(),
                ));
                return;
            }
            ProcessState::Gone => {}
        }
        if !self.starts_again_at_once(container, found) {
            return;
        }
        self.why(PlanReason::Precreates(found.name.clone()));
        self.starts.push(Step::PrecreateContainer {
            name: found.name.clone(),
            sandbox: sandbox.clone(),
            restart_count: found.restart_count.saturating_add(1),
            before: found.id.clone(),
        });
    }

    fn starts_again_at_once(&self, container: &Container, found: &ObservedContainer) -> bool {
        let (pod, history) = (self.snapshot.pod, self.snapshot.history);
        let tried = history.containers.get(&container.name);
        let failed = tried.is_some_and(|tried| {
            let killed = tried.killed.as_ref();
            tried.failure.is_some() || killed.is_some_and(|killed| killed.id == found.id)
        });
        // The back-off is judged as if it had exited now: the runtime has not reported the time.
        !failed
            && restarts_always(container, pod.spec.restart_policy)
            && history.crash_wait(container, self.now, self.now).is_none()
            && !may_pull_images(pod, container)
    }
}

/// True if the container is restarted on its own whatever its exit code is.
fn restarts_always(container: &Container, pod: RestartPolicy) -> bool {
    let rules = &container.restart_rules;
    policy_of(container, pod) == RestartPolicy::Always
        && rules
            .iter()
            .all(|rule| rule.action != RestartAction::RestartAllContainers)
}

/// True if each start may query a registry.
fn may_pull_images(pod: &Pod, container: &Container) -> bool {
    let is_image = |name: &str| {
        let volume = pod.spec.volume(name);
        volume.is_some_and(|volume| matches!(volume.source, VolumeSource::Image { .. }))
    };
    container.pull_policy == PullPolicy::Always
        || container.mounts.iter().any(|mount| is_image(&mount.volume))
}
