//! The postStart hook of a container, which is part of its start. The pod's record notes it until
//! it has ended, and an agent that finds it pending runs it.

use std::sync::Arc;

use rubelet_api::{container::Container, pod::Pod};
use rubelet_base::{ContainerId, event_reason};
use rubelet_node_state::{events::EventType, pod_board::PodEntry};
use rubelet_pod_plan::{
    OperatorIntents,
    reason::KillCause,
    step::{Kill, KillOrder},
};
use tokio::sync::watch;
use tracing::warn;

use super::{PodControl, PodTask, apply::StepOutcome};

/// Waiting reason of a container whose hook failed.
const REASON: &str = "PostStartHookError";

impl PodTask {
    /// Records on disk that the container's hook must run, if it has one. Called before the start,
    /// as an agent that finds the container running has to run the hook.
    pub(super) async fn record_pending_post_start(
        &mut self,
        container: &Container,
        id: &ContainerId,
    ) {
        let lifecycle = container.lifecycle.as_deref();
        if lifecycle.is_none_or(|lifecycle| lifecycle.post_start.is_none()) {
            return;
        }
        let history = &mut self.history.containers;
        history
            .entry(container.name.clone())
            .or_default()
            .post_start = Some(id.clone());
        self.save_record();
        self.context.records.flush().await;
    }

    /// Runs the hook of a container that has just been started, or that an earlier agent started.
    /// If it fails, the container is killed.
    pub(super) async fn post_start(&mut self, name: &str, id: &ContainerId) -> StepOutcome {
        let pod = Arc::clone(&self.pod);
        let container = pod.spec.container(name);
        let lifecycle = container.and_then(|container| container.lifecycle.as_deref());
        let hook = lifecycle.and_then(|lifecycle| lifecycle.post_start.as_ref());
        let (Some(container), Some(hook)) = (container, hook) else {
            self.post_start_done(name);
            return StepOutcome::Done;
        };
        self.show_history();
        let (mut control, mut intents) = (self.control.clone(), self.intents.clone());
        let runner = self.hook_runner();
        // Cancel safety: dropping the hook aborts it, which is what the other branches request.
        let outcome = tokio::select! {
            biased;
            outcome = runner.run(name, id, hook) => outcome,
            () = unwanted(&mut control, &pod, container) => return StepOutcome::Replan,
            () = restart(&mut intents, name, id) => return StepOutcome::Replan,
        };
        let Err(error) = outcome else {
            self.history.note_started(name);
            self.post_start_done(name);
            return StepOutcome::Done;
        };
        let message = error.to_string();
        warn!(pod = %pod.name, container = name, error = message, "PostStart hook failed");
        // The hook's output may hold secrets; events are read by more people than statuses.
        let (kind, reason) = (EventType::Warning, event_reason::FAILED_POST_START_HOOK);
        self.event(name, kind, reason, "PostStartHook failed");
        let cause = KillCause::PostStart;
        let now = self.context.clock.now();
        self.history
            .note_killed(name, id, &format!("{cause}: {message}"), now);
        let kill = Kill {
            name: name.into(),
            id: id.clone(),
            grace: pod.spec.termination_grace_period,
            message: reason.into(),
            cause,
            pre_stop: lifecycle
                .and_then(|lifecycle| lifecycle.pre_stop.clone())
                .map(Arc::new),
            order: KillOrder::Free,
        };
        let starts = &self.context.metrics.starts;
        starts.container_failed(&pod, name, REASON);
        let killed = self.kill_containers(vec![kill]).await;
        let now = self.context.clock.now();
        self.history
            .note_start_failed(container, REASON, &message, now);
        if killed == StepOutcome::Done {
            self.post_start_done(name);
            return StepOutcome::Failed;
        }
        killed
    }

    /// Publishes the running hook: the next plan follows only after it.
    fn show_history(&self) {
        let (board, uid) = (&self.context.board, &self.pod.uid);
        if let Some(shown) = board.get(uid) {
            let history = Arc::new(self.history.clone());
            board.set(
                uid.clone(),
                PodEntry {
                    history,
                    ..PodEntry::clone(&shown)
                },
            );
        }
    }

    fn post_start_done(&mut self, name: &str) {
        if let Some(history) = self.history.containers.get_mut(name) {
            history.post_start = None;
        }
        self.save_record();
    }
}

/// Resolves when the pod must be removed, or an edit replaces the container: that aborts a hook
/// that hangs.
async fn unwanted(control: &mut watch::Receiver<PodControl>, pod: &Pod, container: &Container) {
    let unwanted = |control: &PodControl| match control {
        PodControl::Remove { .. } => true,
        PodControl::Run(new) => {
            let same = new.spec.container(&container.name).is_some_and(|new| {
                new.definition == container.definition && new.hash == container.hash
            });
            !same || new.sandbox_definition != pod.sandbox_definition
        }
    };
    if control.wait_for(unwanted).await.is_err() {
        // The agent stops.
        std::future::pending::<()>().await;
    }
}

/// Resolves when an operator requests a restart of this instance.
async fn restart(
    intents: &mut watch::Receiver<Arc<OperatorIntents>>,
    name: &str,
    id: &ContainerId,
) {
    let asked = |intents: &Arc<OperatorIntents>| {
        let restart = intents.restarts.get(name);
        restart.is_some_and(|restart| restart.instance.as_ref() == Some(id))
    };
    if intents.wait_for(asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}
