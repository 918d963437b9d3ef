//! The steps of a plan, applied. No choices are made here.

mod kill;
mod remove;
mod sandbox;

use rubelet_node_state::events::EventType;
use rubelet_pod_plan::{Step, why::StartCause};
use tracing::warn;

pub(super) use kill::UnfinishedStop;

use super::{Control, PodTask};

/// What a step means for the steps behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next one is applied.
    Continue,
    /// None is applied: the pod is inspected first.
    Stop,
}

impl PodTask {
    /// Applies steps in order; true if all were applied and none failed.
    pub(super) async fn apply_all(&mut self, steps: Vec<Step>) -> bool {
        let mut clean = true;
        // Before the steps are consumed: a pod whose sandbox is replaced keeps its host ports.
        let replaced = steps
            .iter()
            .any(|step| matches!(step, Step::CreateSandbox { .. }));
        for step in steps {
            let (flow, ok) = self.apply(step, replaced).await;
            clean &= ok;
            if flow == Flow::Stop {
                return false;
            }
        }
        clean
    }

    /// Applies one step of a plan in which the sandbox is `replaced`, or not.
    async fn apply(&mut self, step: Step, replaced: bool) -> (Flow, bool) {
        match step {
            Step::CreateSandbox { attempt } => self.create_sandbox(attempt).await,
            Step::StartContainer {
                name,
                sandbox,
                restart_count,
                after_exit,
                cause,
                made,
            } => {
                if cause == StartCause::Asked {
                    self.history.reset_backoff(&name);
                }
                if let Some(made) = made {
                    return self.start_precreated(&name, &made, after_exit).await;
                }
                self.start_container(&name, &sandbox, restart_count, after_exit)
                    .await
            }
            Step::PrecreateContainer {
                name,
                sandbox,
                restart_count,
                before,
            } => {
                // Seldom done: not to be part of what every task takes.
                Box::pin(self.precreate_container(&name, &sandbox, restart_count, &before)).await
            }
            Step::PostStart { name, id } => self.post_start(&name, &id).await,
            Step::NoteRestart { name, after_exit } => {
                self.note_restart(&name, after_exit);
                self.context.records.flush().await;
                (Flow::Continue, true)
            }
            Step::StartCreated { name, id } => self.start_created(&name, &id).await,
            Step::KillContainers(kills) => self.kill_containers(kills).await,
            Step::StopSandboxes(ids) => self.stop_sandboxes(&ids, replaced).await,
            Step::RemoveContainers(dead) => self.remove_containers(dead).await,
            Step::RemoveSandboxes(ids) => self.remove_sandboxes(&ids).await,
            Step::RemoveVolumes => self.remove_volumes().await,
            Step::CleanUp => self.clean_up().await,
        }
    }

    /// Notes the outcome of stopping, in the kubelet's words.
    fn kill_result(&mut self, failures: &[String]) -> (Flow, bool) {
        let failed = match failures {
            [] => None,
            [one] => Some(format!("error killing pod: {one}")),
            several => Some(format!("error killing pod: [{}]", several.join(", "))),
        };
        self.teardown_result("FailedKillPod", failed)
    }

    /// Notes the outcome of stopping or removing; a failure is reported once for each wait.
    fn teardown_result(&mut self, reason: &'static str, failed: Option<String>) -> (Flow, bool) {
        let Some(message) = failed else {
            self.history.teardown = None;
            return (Flow::Continue, true);
        };
        warn!(pod = %self.pod.name, reason, error = %message, "A step failed");
        self.context
            .recorder
            .pod(&self.pod, None, EventType::Warning, reason, &message);
        self.history
            .note_teardown_failed(reason, &message, self.context.clock.now());
        (Flow::Stop, false)
    }

    /// An event about one of the pod's containers.
    pub(super) fn event(&self, container: &str, kind: EventType, reason: &str, message: &str) {
        self.context
            .recorder
            .pod(&self.pod, Some(container), kind, reason, message);
    }
}

/// Ends when the pod must be removed; never if the agent stops.
pub(super) async fn removal(control: &mut tokio::sync::watch::Receiver<Control>) {
    let removed = |control: &Control| matches!(control, Control::Remove { .. });
    if control.wait_for(removed).await.is_err() {
        std::future::pending::<()>().await;
    }
}
