//! Applies the steps of a plan; decides nothing.

mod kill;
mod remove;
mod sandbox;

use rubelet_node_state::events::EventType;
use rubelet_pod_plan::{Step, reason::StartCause};
use tracing::warn;

pub(super) use kill::UnfinishedStop;

use super::{PodControl, PodTask};

/// The outcome of a step, which decides whether the following steps are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// It succeeded; the next step is applied.
    Done,
    /// It failed; the next step does not depend on it and is applied.
    Failed,
    /// The following steps are not applied: the pod is inspected and planned again first.
    Replan,
}

/// Why a step was not finished.
#[derive(Debug)]
pub(super) enum StepError<E> {
    /// It was given up: the pod must be removed, has changed, or has reached its deadline.
    Interrupted,
    /// The step failed.
    Failed(E),
}

impl PodTask {
    /// Applies steps in order. Returns true if all were applied and none failed.
    pub(super) async fn apply_all(&mut self, steps: Vec<Step>) -> bool {
        let mut all_done = true;
        // Before the steps are consumed: a pod whose sandbox is replaced keeps its host ports.
        let replaced = steps
            .iter()
            .any(|step| matches!(step, Step::CreateSandbox { .. }));
        for step in steps {
            match self.apply(step, replaced).await {
                StepOutcome::Done => {}
                StepOutcome::Failed => all_done = false,
                StepOutcome::Replan => return false,
            }
        }
        all_done
    }

    /// Applies one step. `replaced`: the plan also creates a sandbox.
    async fn apply(&mut self, step: Step, replaced: bool) -> StepOutcome {
        match step {
            Step::CreateSandbox { attempt } => self.create_sandbox(attempt).await,
            Step::StartContainer {
                name,
                sandbox,
                restart_count,
                after_exit,
                cause,
                precreated,
            } => {
                if cause == StartCause::Requested {
                    self.history.reset_backoff(&name);
                }
                if let Some(precreated) = precreated {
                    return self.start_precreated(&name, &precreated, after_exit).await;
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
                // Boxed, as it is rare: otherwise its state would be part of every task's.
                Box::pin(self.precreate_container(&name, &sandbox, restart_count, &before)).await
            }
            Step::PostStart { name, id } => self.post_start(&name, &id).await,
            Step::NoteRestart { name, after_exit } => {
                self.note_restart(&name, after_exit);
                self.context.records.flush().await;
                StepOutcome::Done
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

    /// Notes the result of stopping, as the kubelet words it.
    fn kill_result(&mut self, failures: &[String]) -> StepOutcome {
        let failed = match failures {
            [] => None,
            [one] => Some(format!("error killing pod: {one}")),
            several => Some(format!("error killing pod: [{}]", several.join(", "))),
        };
        self.teardown_result("FailedKillPod", failed)
    }

    /// Notes the result of stopping or removing, and records an event for a failure.
    fn teardown_result(&mut self, reason: &'static str, failed: Option<String>) -> StepOutcome {
        let Some(message) = failed else {
            self.history.teardown = None;
            return StepOutcome::Done;
        };
        warn!(pod = %self.pod.name, reason, error = %message, "A step failed");
        self.context
            .recorder
            .pod(&self.pod, None, EventType::Warning, reason, &message);
        self.history
            .note_teardown_failed(reason, &message, self.context.clock.now());
        StepOutcome::Replan
    }

    /// Records an event about one of the pod's containers.
    pub(super) fn event(&self, container: &str, kind: EventType, reason: &str, message: &str) {
        self.context
            .recorder
            .pod(&self.pod, Some(container), kind, reason, message);
    }
}

/// Resolves when the pod must be removed; never if the agent stops.
pub(super) async fn removal(control: &mut tokio::sync::watch::Receiver<PodControl>) {
    let removed = |control: &PodControl| matches!(control, PodControl::Remove { .. });
    if control.wait_for(removed).await.is_err() {
        std::future::pending::<()>().await;
    }
}
