//! Stops sandboxes, and removes containers, sandboxes and volumes.

use rubelet_base::{ErrorChain, SandboxId};
use rubelet_cri::v1;
use rubelet_pod_plan::{VolumeState, step::DeadContainer};

use super::StepOutcome;
use crate::pod_task::PodTask;

impl PodTask {
    /// Stops sandboxes. The pod's host ports are released with its network, unless the sandbox is
    /// `replaced`: the next one takes them over.
    pub(super) async fn stop_sandboxes(
        &mut self,
        ids: &[SandboxId],
        replaced: bool,
    ) -> StepOutcome {
        let mut failures = Vec::new();
        for id in ids {
            let request = v1::StopPodSandboxRequest {
                pod_sandbox_id: id.as_str().to_owned(),
            };
            let call = self.context.runtime.stop_pod_sandbox(request);
            let result = self.context.stops.run(call).await;
            // After an error as well: the sandbox may have stopped all the same.
            self.context.pleg.changed_sandbox(&self.pod.uid, id);
            if let Err(error) = result
                && !error.is_not_found()
            {
                let (uid, error) = (&self.pod.uid, ErrorChain(&error).to_string());
                failures.push(format!(
                    "failed to \"KillPodSandbox\" for \"{uid}\" with KillPodSandboxError: {error:?}"
                ));
            }
        }
        // Older sandboxes were stopped when they were replaced.
        let sandboxes = &self.observed.sandboxes;
        let mut with_network = sandboxes
            .iter()
            .enumerate()
            .filter(|(position, sandbox)| *position == 0 || sandbox.ready);
        if !replaced
            && failures.is_empty()
            && with_network.all(|(_, sandbox)| ids.contains(&sandbox.id))
        {
            self.held_ports = None;
            self.context.releases.note();
        }
        self.kill_result(&failures)
    }

    pub(super) async fn remove_containers(&mut self, dead: Vec<DeadContainer>) -> StepOutcome {
        let mut failed = None;
        for container in dead {
            // The logs first, as in the kubelet: a log that outlives its container would count as
            // one more restart.
            let (name, count) = (&container.name, container.restart_count);
            let host = &self.context.host;
            if !container.keep_log {
                host.remove_logs(&self.pod, name, &container.id, count)
                    .await;
            }
            let request = v1::RemoveContainerRequest {
                container_id: container.id.as_str().to_owned(),
            };
            let call = self.context.runtime.remove_container(request);
            match self.context.removals.run(call).await {
                Err(error) if !error.is_not_found() => {
                    // An interrupted start can leave a process that the runtime's CRI service does
                    // not know. The runtime refuses the removal while this process exists.
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
                        text.push_str(&format!("; killed {killed} leftover processes"));
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

    pub(super) async fn remove_sandboxes(&mut self, ids: &[SandboxId]) -> StepOutcome {
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

    pub(super) async fn remove_volumes(&mut self) -> StepOutcome {
        // A container that is created from now on needs volumes first.
        self.prepared = None;
        let result = self.context.host.remove_volumes(&self.pod.uid).await;
        if result.is_ok() {
            self.history.volumes = VolumeState::Removed;
        }
        let failed = result.err().map(|error| error.message);
        self.teardown_result("FailedCleanUp", failed)
    }

    pub(super) async fn clean_up(&mut self) -> StepOutcome {
        let (name, uid) = (&self.pod.name, &self.pod.uid);
        let result = self.context.host.clean_up(name, uid).await;
        if result.is_ok() {
            // After the clean-up: an agent that dies before this finds the record, and cleans up
            // again.
            self.context.records.remove(uid);
            self.context.releases.note();
        }
        let failed = result.err().map(|error| error.message);
        self.teardown_result("FailedCleanUp", failed)
    }
}
