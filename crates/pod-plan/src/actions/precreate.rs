//! The next instance of a container whose process is gone, created before the runtime reports the
//! exit, where it would be started at once whatever the exit code turns out to be.

use rubelet_api::{
    container::{Container, PullPolicy, RestartAction},
    pod::{Pod, RestartPolicy},
    volume::VolumeSource,
};
use rubelet_base::SandboxId;

use super::{draft::Draft, restart::policy_of};
use crate::{
    observed::{ObservedContainer, ProcessState},
    step::Step,
    why::Why,
};

impl Draft<'_> {
    /// Creates the instance after `found`, which the runtime reports as running, if there will
    /// certainly be one and it may be created now.
    pub(super) fn precreate_container(
        &mut self,
        container: &Container,
        found: &ObservedContainer,
        sandbox: &SandboxId,
    ) {
        match found.process {
            ProcessState::AsReported => return,
            ProcessState::Lost => {
                self.why(Why::ExitNotReported(found.name.clone(), found.id.clone()));
                return;
            }
            ProcessState::Gone => {}
        }
        if !self.starts_again_at_once(container, found) {
            return;
        }
        self.why(Why::Precreates(found.name.clone()));
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
            && !asks_for_images(pod, container)
    }
}

/// True if no exit code keeps the container from starting again on its own.
fn restarts_always(container: &Container, pod: RestartPolicy) -> bool {
    let rules = &container.restart_rules;
    policy_of(container, pod) == RestartPolicy::Always
        && rules
            .iter()
            .all(|rule| rule.action != RestartAction::RestartAllContainers)
}

/// True if each start may have to query a registry.
fn asks_for_images(pod: &Pod, container: &Container) -> bool {
    let is_image = |name: &str| {
        let volume = pod.spec.volume(name);
        volume.is_some_and(|volume| matches!(volume.source, VolumeSource::Image { .. }))
    };
    container.pull_policy == PullPolicy::Always
        || container.mounts.iter().any(|mount| is_image(&mount.volume))
}
