//! The steps of a plan, applied. No choices are made here.

use std::time::Duration;

use futures_util::future::join_all;
use rubelet_base::{ErrorChain, SandboxId};
use rubelet_cri::v1;
use rubelet_pod_plan::{
    Step,
    cri_config::sandbox_config,
    plan::{DeadContainer, Kill},
};
use tracing::warn;

use super::{Control, PodTask};
use crate::events::EventType;

/// The shortest grace that is asked of a runtime (kubelet: 2 s).
const MINIMUM_GRACE: Duration = Duration::from_secs(2);

/// So long the runtime is busy with a container that is to end; after that it only waits.
const KILL_BUSY: Duration = Duration::from_millis(250);

/// Whether the steps behind this one still make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// They do.
    Continue,
    /// They don't: look again first.
    Stop,
}

impl PodTask {
    /// Applies steps in order; true if all were applied and none failed.
    pub(super) async fn apply_all(&mut self, steps: Vec<Step>) -> bool {
        let mut clean = true;
        for step in steps {
            let (flow, ok) = self.apply(step).await;
            clean &= ok;
            if flow == Flow::Stop {
                return false;
            }
        }
        clean
    }

    async fn apply(&mut self, step: Step) -> (Flow, bool) {
        match step {
            Step::CreateSandbox { attempt } => self.create_sandbox(attempt).await,
            Step::StartContainer {
                name,
                sandbox,
                restart_count,
                after_exit,
            } => {
                self.start_container(&name, &sandbox, restart_count, after_exit)
                    .await
            }
            Step::StartCreated { name, id } => self.start_created(&name, &id).await,
            Step::KillContainers(kills) => self.kill_containers(kills).await,
            Step::StopSandboxes(ids) => self.stop_sandboxes(&ids).await,
            Step::RemoveContainers(dead) => self.remove_containers(dead).await,
            Step::RemoveSandboxes(ids) => self.remove_sandboxes(&ids).await,
            Step::CleanUp => self.clean_up().await,
        }
    }

    async fn create_sandbox(&mut self, attempt: u32) -> (Flow, bool) {
        let mut control = self.control.clone();
        // Cancel safety: an abandoned call may still have made a sandbox; the list that follows
        // finds it by its label.
        let result = tokio::select! {
            biased;
            result = self.try_create_sandbox(attempt) => result,
            () = removal(&mut control) => Err(("Interrupted", String::new())),
        };
        let uid = &self.pod.uid;
        match result {
            Ok(id) => {
                self.history.sandbox = None;
                self.context.pleg.learned_sandbox(uid, &id);
                self.prepared = Some(std::sync::Arc::clone(&self.pod));
                (Flow::Continue, true)
            }
            Err(("Interrupted", _)) => {
                self.context.pleg.mark_unknown(uid);
                (Flow::Stop, false)
            }
            Err((reason, message)) => {
                self.context.pleg.mark_unknown(uid);
                self.context
                    .recorder
                    .pod(&self.pod, None, EventType::Warning, reason, &message);
                self.history
                    .note_sandbox_failed(reason, &message, self.context.clock.now());
                (Flow::Stop, false)
            }
        }
    }

    async fn try_create_sandbox(&self, attempt: u32) -> Result<SandboxId, (&'static str, String)> {
        let context = &self.context;
        let (driver, network_problem) = {
            let state = context.runtime_state.borrow();
            (state.cgroup_driver, state.network_problem.clone())
        };
        if let Some(problem) = network_problem.filter(|_| !self.pod.spec.host_network) {
            return Err((
                "NetworkNotReady",
                format!("network is not ready: {problem}"),
            ));
        }
        let host = &context.host;
        let failed = |error: crate::pod_host::HostError| (error.reason, error.message);
        host.prepare(&self.pod, driver).await.map_err(failed)?;
        let (inputs, notes) = host
            .sandbox_inputs(&self.pod, attempt, driver)
            .await
            .map_err(failed)?;
        for (reason, message) in notes {
            context
                .recorder
                .pod(&self.pod, None, EventType::Warning, reason, &message);
        }
        let request = v1::RunPodSandboxRequest {
            config: Some(sandbox_config(&self.pod, inputs)),
            runtime_handler: String::new(),
        };
        let call = context.drain.run(context.runtime.run_pod_sandbox(request));
        match context.throttle.run(call).await {
            Ok(answer) => Ok(answer.pod_sandbox_id.into()),
            Err(error) => Err((
                "FailedCreatePodSandBox",
                format!("Failed to create pod sandbox: {}", ErrorChain(&error)),
            )),
        }
    }

    async fn kill_containers(&mut self, kills: Vec<Kill>) -> (Flow, bool) {
        let context = &self.context;
        for kill in &kills {
            let name = Some(&*kill.name);
            context
                .recorder
                .pod(&self.pod, name, EventType::Normal, "Killing", &kill.message);
        }
        let calls = kills.iter().map(|kill| {
            let grace = kill.grace.max(MINIMUM_GRACE);
            let call = context.runtime.stop_container(v1::StopContainerRequest {
                container_id: kill.id.as_str().to_owned(),
                timeout: i64::try_from(grace.as_secs()).unwrap_or(i64::MAX),
            });
            context.throttle.run_counting(KILL_BUSY, call)
        });
        let mut failed = None;
        for (kill, result) in kills.iter().zip(join_all(calls).await) {
            if let Err(error) = result
                && !error.is_not_found()
            {
                let text = ErrorChain(&error);
                failed = Some(format!("error killing container {:?}: {text}", kill.name));
            }
        }
        context.pleg.mark(&self.pod.uid);
        self.teardown_result("FailedKillPod", failed)
    }

    async fn stop_sandboxes(&mut self, ids: &[SandboxId]) -> (Flow, bool) {
        let mut failed = None;
        for id in ids {
            let request = v1::StopPodSandboxRequest {
                pod_sandbox_id: id.as_str().to_owned(),
            };
            let call = self.context.runtime.stop_pod_sandbox(request);
            let result = self.context.throttle.run(call).await;
            self.context.pleg.changed_sandbox(&self.pod.uid, id);
            if let Err(error) = result
                && !error.is_not_found()
            {
                failed = Some(format!(
                    "error stopping sandbox {id}: {}",
                    ErrorChain(&error)
                ));
            }
        }
        self.teardown_result("FailedKillPod", failed)
    }

    async fn remove_containers(&mut self, dead: Vec<DeadContainer>) -> (Flow, bool) {
        let mut failed = None;
        for container in dead {
            // First the logs, as the kubelet does: a log that outlives its container would count as
            // one more restart.
            let (name, count) = (&container.name, container.restart_count);
            let host = &self.context.host;
            host.remove_logs(&self.pod, name, &container.id, count)
                .await;
            let request = v1::RemoveContainerRequest {
                container_id: container.id.as_str().to_owned(),
            };
            let call = self.context.runtime.remove_container(request);
            match self.context.removals.run(call).await {
                Err(error) if !error.is_not_found() => {
                    // A start that was broken off can leave a process behind of which the runtime's
                    // CRI service knows nothing; it refuses the removal while that one is there.
                    let killed = match error.is_unavailable() {
                        true => 0,
                        false => host.kill_leftovers(&self.pod.uid, &container.id).await,
                    };
                    self.context.pleg.mark(&self.pod.uid);
                    let mut text = format!(
                        "error removing container {}: {}",
                        container.id,
                        ErrorChain(&error)
                    );
                    if killed > 0 {
                        text.push_str(&format!("; killed {killed} processes that were left of it"));
                    }
                    failed = Some(text);
                }
                _ => {
                    let pleg = &self.context.pleg;
                    pleg.removed_container(&self.pod.uid, &container.id);
                }
            }
        }
        self.teardown_result("FailedRemoveContainer", failed)
    }

    async fn remove_sandboxes(&mut self, ids: &[SandboxId]) -> (Flow, bool) {
        let mut failed = None;
        for id in ids {
            let request = v1::RemovePodSandboxRequest {
                pod_sandbox_id: id.as_str().to_owned(),
            };
            let call = self.context.runtime.remove_pod_sandbox(request);
            let result = self.context.removals.run(call).await;
            self.context.pleg.changed_sandbox(&self.pod.uid, id);
            if let Err(error) = result
                && !error.is_not_found()
            {
                failed = Some(format!(
                    "error removing sandbox {id}: {}",
                    ErrorChain(&error)
                ));
            }
        }
        self.teardown_result("FailedRemoveSandbox", failed)
    }

    async fn clean_up(&mut self) -> (Flow, bool) {
        let (name, uid) = (&self.pod.name, &self.pod.uid);
        let result = self.context.host.clean_up(name, uid).await;
        if result.is_ok() {
            self.context.records.remove(uid);
        }
        let failed = result.err().map(|error| error.message);
        self.teardown_result("FailedCleanUp", failed)
    }

    /// Notes the outcome of stopping or removing; what failed is told once for each wait.
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
}

/// Ends when the pod is to be removed; never if the agent stops.
pub(super) async fn removal(control: &mut tokio::sync::watch::Receiver<Control>) {
    let removed = |control: &Control| matches!(control, Control::Remove { .. });
    if control.wait_for(removed).await.is_err() {
        std::future::pending::<()>().await;
    }
}
