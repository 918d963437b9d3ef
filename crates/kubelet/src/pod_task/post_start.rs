//! The postStart hook of a container: a part of its start. Until it has ended, the pod's record
//! notes it, and an agent that finds it pending runs it.

use std::sync::Arc;

use rubelet_api::{container::Container, pod::Pod};
use rubelet_base::ContainerId;
use rubelet_node_state::{events::EventType, pod_board::PodEntry};
use rubelet_pod_plan::{
    Intents,
    step::{Kill, KillOrder},
    why::KillCause,
};
use tokio::sync::watch;
use tracing::warn;

use super::{Control, PodTask, apply::Flow};

/// What the container waits for after its hook failed.
const REASON: &str = "PostStartHookError";

impl PodTask {
    /// Notes, on disk as well, that the hook of a container must run, if it has one. Comes before
    /// the start: an agent that finds the container running has to run the hook.
    pub(super) async fn owe_post_start(&mut self, container: &Container, id: &ContainerId) {
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
    /// Where it fails, the container is ended.
    pub(super) async fn post_start(&mut self, name: &str, id: &ContainerId) -> (Flow, bool) {
        let pod = Arc::clone(&self.pod);
        let container = pod.spec.container(name);
        let lifecycle = container.and_then(|container| container.lifecycle.as_deref());
        let hook = lifecycle.and_then(|lifecycle| lifecycle.post_start.as_ref());
        let (Some(container), Some(hook)) = (container, hook) else {
            self.post_start_done(name);
            return (Flow::Continue, true);
        };
        self.show_history();
        let (mut control, mut intents) = (self.control.clone(), self.intents.clone());
        let runner = self.hook_runner();
        // Cancel safety: a hook that is dropped is broken off, which is what the others ask for.
        let outcome = tokio::select! {
            biased;
            outcome = runner.run(name, id, hook) => outcome,
            () = unwanted(&mut control, &pod, container) => return (Flow::Stop, false),
            () = restart(&mut intents, name, id) => return (Flow::Stop, false),
        };
        let Err(error) = outcome else {
            self.history.note_started(name);
            self.post_start_done(name);
            return (Flow::Continue, true);
        };
        let message = error.to_string();
        warn!(pod = %pod.name, container = name, error = message, "PostStart hook failed");
        // The hook's output may hold secrets; events are read by more people than statuses.
        let (kind, reason) = (EventType::Warning, "FailedPostStartHook");
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
        let (flow, killed) = self.kill_containers(vec![kill]).await;
        let now = self.context.clock.now();
        self.history
            .note_start_failed(container, REASON, &message, now);
        if killed {
            self.post_start_done(name);
        }
        (flow, false)
    }

    /// Shows the hook as running: the next plan comes only after it.
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

/// Ends when the pod must be removed, or an edit replaces the container: that ends a hook that
/// hangs.
async fn unwanted(control: &mut watch::Receiver<Control>, pod: &Pod, container: &Container) {
    let unwanted = |control: &Control| match control {
        Control::Remove { .. } => true,
        Control::Run(new) => {
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

/// Ends when an operator requests a restart of this instance.
async fn restart(intents: &mut watch::Receiver<Arc<Intents>>, name: &str, id: &ContainerId) {
    let asked = |intents: &Arc<Intents>| {
        let restart = intents.restarts.get(name);
        restart.is_some_and(|restart| restart.instance.as_ref() == Some(id))
    };
    if intents.wait_for(asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}
