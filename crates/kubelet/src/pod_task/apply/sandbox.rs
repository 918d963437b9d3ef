//! Creates a sandbox.

use std::{sync::Arc, time::Duration};

use rubelet_api::volume_plugin::VolumePlugin;
use rubelet_base::{SandboxId, event_reason};
use rubelet_cri::v1;
use rubelet_node_state::{
    events::EventType,
    host_error::{HostError, failed_sandbox},
    runtime_state::RuntimeHandler,
};
use rubelet_pod_plan::{
    VolumeState,
    cri_config::sandbox_config,
    history::{HOST_PORT_HELD, NETWORK_NOT_READY},
};
use tokio::time::Instant;

use super::{StepError, StepOutcome, removal};
use crate::pod_task::{PodTask, repeat_backoff::RepeatBackoff};

impl PodTask {
    pub(super) async fn create_sandbox(&mut self, attempt: u32) -> StepOutcome {
        // Once for each replacement: after a failed attempt the event has been recorded already.
        if attempt > 0 && self.history.sandbox.is_none() {
            let message = "Pod sandbox changed, it will be killed and re-created.";
            let (kind, reason) = (EventType::Normal, event_reason::SANDBOX_CHANGED);
            self.context
                .recorder
                .pod(&self.pod, None, kind, reason, message);
        }
        // Before the attempt: an interrupted one may have created some of them.
        self.history.volumes = VolumeState::Made;
        let mut control = self.control.clone();
        // Cancel safety: an abandoned call may still create a sandbox; the list that follows finds
        // it by its label.
        let result = tokio::select! {
            biased;
            result = self.try_create_sandbox(attempt) => result.map_err(StepError::Failed),
            () = removal(&mut control) => Err(StepError::Interrupted),
        };
        let uid = &self.pod.uid;
        match result {
            Ok(id) => {
                self.history.sandbox = None;
                self.awaited_port = "".into();
                self.context.pleg.learned_sandbox(uid, &id);
                self.prepared = Some(Arc::clone(&self.pod));
                self.save_record();
                StepOutcome::Done
            }
            Err(StepError::Interrupted) => {
                self.abandoned_sandbox = Some(attempt);
                self.context.pleg.mark_unknown(uid);
                StepOutcome::Replan
            }
            Err(StepError::Failed(HostError {
                reason: HOST_PORT_HELD,
                message,
            })) => {
                // Nothing was called that must not be repeated. The event is recorded once.
                self.repeat_backoff = RepeatBackoff::default();
                self.context.pleg.mark(uid);
                if *self.awaited_port != *message {
                    self.awaited_port = message.as_str().into();
                    let kind = EventType::Normal;
                    let recorder = &self.context.recorder;
                    recorder.pod(&self.pod, None, kind, HOST_PORT_HELD, &message);
                }
                let now = self.context.clock.now();
                self.history
                    .note_sandbox_waits(HOST_PORT_HELD, &message, now);
                StepOutcome::Replan
            }
            Err(StepError::Failed(HostError { reason, message })) => {
                if reason == NETWORK_NOT_READY {
                    // Nothing was called that must not be repeated.
                    self.repeat_backoff = RepeatBackoff::default();
                }
                self.context.pleg.mark_unknown(uid);
                self.context
                    .recorder
                    .pod(&self.pod, None, EventType::Warning, reason, &message);
                self.history
                    .note_sandbox_failed(reason, &message, self.context.clock.now());
                StepOutcome::Replan
            }
        }
    }

    async fn try_create_sandbox(&mut self, attempt: u32) -> Result<SandboxId, HostError> {
        let context = Arc::clone(&self.context);
        let (driver, network_problem) = {
            let state = context.runtime_state.borrow();
            (state.cgroup_driver, state.network_problem.clone())
        };
        if let Some(problem) = network_problem.filter(|_| !self.pod.spec.host_network) {
            return Err(HostError {
                reason: NETWORK_NOT_READY,
                message: format!("network is not ready: {problem}"),
            });
        }
        // A release from here on may be of the resource that this attempt fails for: it wakes the
        // pod.
        self.releases.mark_unchanged();
        // Ports of an earlier definition, or of a call that failed, are released.
        let held = self.held_ports.take();
        let taken = context.host_ports.take(&self.pod, held);
        self.held_ports = taken.map_err(|held| HostError {
            reason: HOST_PORT_HELD,
            message: held.to_string(),
        })?;
        let host = &context.host;
        let wanted = *self.volumes_wanted.get_or_insert_with(Instant::now);
        let objects = self.volume_objects().await?;
        host.prepare(&self.pod, driver, &objects).await?;
        self.volumes_wanted = None;
        let plugins = self.pod.spec.volumes.iter().map(|it| it.source.plugin());
        // The runtime makes those of images, with the containers.
        for plugin in plugins.filter(|plugin| *plugin != VolumePlugin::Image) {
            let storage = &context.metrics.storage;
            storage.volume_ready(plugin, wanted.elapsed());
        }
        let starts = &context.metrics.starts;
        starts.pod_starting(&self.pod);
        let result = self.run_sandbox(attempt).await;
        if result.is_err() {
            starts.pod_failed(&self.pod);
        }
        result
    }

    /// Has the runtime create the sandbox of a pod for which the host is prepared.
    async fn run_sandbox(&mut self, attempt: u32) -> Result<SandboxId, HostError> {
        let context = Arc::clone(&self.context);
        let driver = context.runtime_state.borrow().cgroup_driver;
        let host = &context.host;
        let (inputs, notes) = host.sandbox_inputs(&self.pod, attempt, driver).await?;
        let handler = self.runtime_handler().await;
        let (runtime_handler, features) = handler.map_err(|error| HostError {
            message: failed_sandbox(&error.message),
            ..error
        })?;
        if !self.pod.spec.host_users && !features.is_some_and(|features| features.user_namespaces) {
            let runtime = Arc::clone(&context.runtime_state.borrow().name);
            let message = no_user_namespaces(&runtime, &runtime_handler);
            return Err(HostError {
                reason: event_reason::FAILED_SANDBOX,
                message: failed_sandbox(&message),
            });
        }
        for (reason, message) in notes {
            context
                .recorder
                .pod(&self.pod, None, EventType::Warning, reason, &message);
        }
        let request = v1::RunPodSandboxRequest {
            config: Some(sandbox_config(&self.pod, inputs)),
            runtime_handler: runtime_handler.clone(),
        };
        if self.history.sandbox_attempt != attempt {
            self.history.sandbox_attempt = attempt;
            self.save_record();
            // On disk as well: an unrecorded attempt number would be used twice after a crash.
            context.records.flush().await;
        }
        // The throttle is around the drain, so that a call that waits for the throttle does not
        // delay the stop of the agent.
        let call = context
            .drain
            .run(timed(context.runtime.run_pod_sandbox(request)));
        let (answer, took) = context.starts.run(call).await;
        let starts = &context.metrics.starts;
        starts.sandbox_ended(&runtime_handler, took, answer.is_ok());
        match answer {
            Ok(answer) => Ok(answer.pod_sandbox_id.into()),
            Err(error) => Err(HostError::sandbox(&error)),
        }
    }
}

impl PodTask {
    /// The name of the pod's runtime handler, empty for the default one, and its features if the
    /// runtime reports them.
    pub(in crate::pod_task) async fn runtime_handler(
        &self,
    ) -> Result<(String, Option<RuntimeHandler>), HostError> {
        let name = match self.pod.spec.runtime_class.as_deref() {
            None | Some("") => String::new(),
            Some(class) => self.context.objects.runtime_handler(class).await?,
        };
        let state = self.context.runtime_state.borrow();
        let mut handlers = state.handlers.iter();
        let known = handlers.find(|handler| *handler.name == *name).cloned();
        Ok((name, known))
    }
}

/// What comes of a call, and how long it took.
async fn timed<T>(call: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    (call.await, began.elapsed())
}

fn no_user_namespaces(runtime: &str, handler: &str) -> String {
    let subject = match handler {
        "" => format!("the container runtime {runtime}"),
        named => format!("the handler {named:?} of the container runtime {runtime}"),
    };
    format!("spec.hostUsers is false, but {subject} does not support user namespaces")
}
