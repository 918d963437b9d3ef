//! Starting single containers, now or after a back-off.

use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::SandboxId;

use super::{builder::ActionsBuilder, restart::restart_requested, stop::dead_container};
use crate::{
    definition,
    observed::{ContainerPhase, ObservedContainer},
    reason::{PlanReason, StartCause},
    step::Step,
};

impl ActionsBuilder<'_> {
    /// Starts a container in place of `found`, now or after its backoff.
    pub(super) fn start(
        &mut self,
        container: &Container,
        found: Option<&ObservedContainer>,
        sandbox: &SandboxId,
    ) {
        let asked = restart_requested(self.snapshot, &container.name);
        let changed = found.is_some_and(|found| definition::container_changed(container, found));
        // Only an exit causes a back-off: a requested restart and an edit start at once.
        let end = found
            .filter(|_| !asked && !changed)
            .and_then(|_| self.snapshot.observed.newest_exit(&container.name))
            .map(|exit| exit.finished_at);
        let history = self.snapshot.history;
        let crash = end
            .and_then(|end| history.crash_wait(container, end, self.now))
            .map(|(until, _)| until);
        let failed = self.failure_wait(container);
        if let Some(until) = crash.max(failed).filter(|_| !asked) {
            self.wait(container, until);
            return;
        }
        let cause = match found {
            None if self.was_restarting_all() => StartCause::AllRestart,
            None => StartCause::First,
            Some(_) if asked => StartCause::Requested,
            Some(_) if changed => StartCause::DefinitionChanged,
            Some(found) if found.sandbox != *sandbox => StartCause::SandboxReplaced,
            Some(found) => match &found.phase {
                ContainerPhase::Exited(exit) => StartCause::Exited(exit.code),
                ContainerPhase::Running { .. } => StartCause::Unhealthy,
                _ => StartCause::Unknown,
            },
        };
        self.why(PlanReason::Starts(container.name.clone(), cause.clone()));
        if let Some(found) = found.filter(|found| found.phase == ContainerPhase::Created) {
            // The runtime may still be starting it for an agent that died: both instances would
            // run.
            let created = vec![dead_container(found)];
            self.starts.push(Step::RemoveContainers(created));
        }
        self.starts.push(Step::StartContainer {
            name: container.name.clone(),
            sandbox: sandbox.clone(),
            restart_count: found.map(|found| found.restart_count.saturating_add(1)),
            after_exit: end,
            cause,
            precreated: None,
        });
    }

    /// Starts a created container.
    pub(super) fn start_created(&mut self, container: &Container, found: &ObservedContainer) {
        if let Some(until) = self.failure_wait(container) {
            self.wait(container, until);
            return;
        }
        let cause = StartCause::CreatedOnly(found.id.clone());
        self.why(PlanReason::Starts(container.name.clone(), cause));
        self.starts.push(Step::StartCreated {
            name: container.name.clone(),
            id: found.id.clone(),
        });
    }

    /// Runs the postStart hook that an earlier process of the agent did not complete; true if there
    /// is one.
    pub(super) fn post_start(&mut self, container: &Container, found: &ObservedContainer) -> bool {
        let (name, id) = (&container.name, &found.id);
        if !self.snapshot.history.post_start_pending(name, id) {
            return false;
        }
        self.why(PlanReason::PostStartPending(name.clone()));
        self.starts.push(Step::PostStart {
            name: name.clone(),
            id: id.clone(),
        });
        true
    }

    /// The end of the back-off after a failed start. A restart that was requested after the failure
    /// does not wait.
    fn failure_wait(&mut self, container: &Container) -> Option<Timestamp> {
        let history = self.snapshot.history.containers.get(&container.name)?;
        let failure = history.failure.as_ref()?;
        let intent = self.snapshot.intents.restarts.get(&container.name);
        if intent.is_some_and(|intent| intent.at > failure.at) {
            return None;
        }
        if let Some(flip) = crate::image::backoff_shown_from(failure)
            && flip > self.now
        {
            self.actions.wake_by(flip);
        }
        failure.waits_until(self.now)
    }

    fn wait(&mut self, container: &Container, until: Timestamp) {
        self.why(PlanReason::BackOff(container.name.clone(), until));
        self.actions.wake_by(until);
    }

    fn was_restarting_all(&self) -> bool {
        self.snapshot.was_restarting_all()
    }
}
