//! Starts a container: image, files, configuration, create, start, postStart hook.

mod config;
mod precreate;

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join;
use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::{ContainerId, ErrorChain, SandboxId, event_reason};
use rubelet_cri::{CriError, v1};
use rubelet_image_pull::images::PresentImage;
use rubelet_node_state::start_failure::StartFailure;
use rubelet_node_state::{events::EventType, objects::CONFIG_ERROR};
use rubelet_pod_plan::{
    VolumeState,
    cri_config::{SandboxInputs, sandbox_config},
};

use super::{
    PodTask,
    apply::{StepError, StepOutcome, removal},
};

/// Present images of a container.
struct ContainerImages {
    own: PresentImage,
    /// Images that it mounts: the runtime's identifier, by name of the volume.
    volumes: BTreeMap<Box<str>, String>,
}

/// The started container, or why it was not started.
type StartResult = Result<ContainerId, StepError<StartFailure>>;

impl PodTask {
    pub(super) async fn start_container(
        &mut self,
        name: &str,
        sandbox: &SandboxId,
        restart_count: Option<u32>,
        after_exit: Option<Timestamp>,
    ) -> StepOutcome {
        let pod = Arc::clone(&self.pod);
        let Some(container) = pod.spec.container(name) else {
            return StepOutcome::Replan;
        };
        if let Some(finished_at) = after_exit {
            self.note_restart(name, finished_at);
        }
        self.history.volumes = VolumeState::Made;
        let starts = &self.context.metrics.starts;
        starts.container_starting(&pod, name);
        let mut control = self.control.clone();
        let deadline = self.until_deadline();
        // Cancel safety: an abandoned call may still create a container; the list that follows
        // finds it by its label.
        let started = tokio::select! {
            biased;
            started = self.try_start(container, sandbox, restart_count) => started,
            () = removal(&mut control) => Err(StepError::Interrupted),
            () = tokio::time::sleep(deadline.unwrap_or_default()), if deadline.is_some() => {
                Err(StepError::Interrupted)
            }
        };
        if started.is_ok() {
            self.prepared = Some(Arc::clone(&pod));
        }
        self.note_start(container, started).await
    }

    /// Time until `activeDeadlineSeconds` is exceeded; `None` if the pod has no such deadline.
    fn until_deadline(&self) -> Option<std::time::Duration> {
        let limit = self.pod.spec.active_deadline?;
        let deadline = rubelet_pod_plan::after(self.started_at()?, limit);
        let left = deadline.duration_since(self.context.clock.now());
        Some(std::time::Duration::try_from(left).unwrap_or_default())
    }

    /// Counts a restart in the crash back-off, and in the record of the pod. The record must be on
    /// disk before the container is started: otherwise the container would restart without a
    /// back-off after a crash of the agent.
    pub(super) fn note_restart(&mut self, name: &str, finished_at: Timestamp) {
        let pod = Arc::clone(&self.pod);
        let Some(container) = pod.spec.container(name) else {
            return;
        };
        let max = self.context.settings.crash_backoff_max;
        self.history
            .note_restart(container, finished_at, self.context.clock.now(), max);
        self.save_record();
    }

    pub(super) async fn start_created(&mut self, name: &str, id: &ContainerId) -> StepOutcome {
        let pod = Arc::clone(&self.pod);
        let Some(container) = pod.spec.container(name) else {
            return StepOutcome::Replan;
        };
        let count = self
            .observed
            .containers
            .iter()
            .find(|found| found.id == *id)
            .map_or(0, |found| found.restart_count);
        let starts = &self.context.metrics.starts;
        starts.container_starting(&pod, name);
        let mut control = self.control.clone();
        let started = tokio::select! {
            biased;
            started = self.start_by_id(container, id, count) => match started {
                Ok(()) => Ok(id.clone()),
                Err(failure) => Err(StepError::Failed(failure)),
            },
            () = removal(&mut control) => Err(StepError::Interrupted),
        };
        self.note_start(container, started).await
    }

    async fn note_start(&mut self, container: &Container, started: StartResult) -> StepOutcome {
        let context = &self.context;
        match started {
            Ok(id) => {
                if self.history.post_start_pending(&container.name, &id) {
                    return self.post_start(&container.name, &id).await;
                }
                self.history.note_started(&container.name);
                StepOutcome::Done
            }
            Err(StepError::Interrupted) => {
                context.pleg.mark_unknown(&self.pod.uid);
                StepOutcome::Replan
            }
            Err(StepError::Failed(failure)) => {
                context.pleg.mark_unknown(&self.pod.uid);
                let now = context.clock.now();
                let StartFailure { reason, message } = &failure;
                let starts = &context.metrics.starts;
                starts.container_failed(&self.pod, &container.name, reason);
                let text = if rubelet_pod_plan::image::is_image_failure(reason) {
                    format!("Error: {reason}")
                } else {
                    format!("Error: {message}")
                };
                self.event(
                    &container.name,
                    EventType::Warning,
                    event_reason::FAILED,
                    &text,
                );
                self.history
                    .note_start_failed(container, reason, message, now);
                // Regular containers do not depend on each other; the next one is tried.
                StepOutcome::Failed
            }
        }
    }

    async fn try_start(
        &mut self,
        container: &Container,
        sandbox: &SandboxId,
        restart_count: Option<u32>,
    ) -> StartResult {
        let images = {
            let mut control = self.control.clone();
            tokio::select! {
                biased;
                images = self.images_of(container) => images,
                // An edit may name another image: a pull that is no longer needed must not delay
                // the pod.
                Ok(()) = control.changed() => return Err(StepError::Interrupted),
            }
        };
        let images = images.map_err(StepError::Failed)?;
        self.create_and_start(container, sandbox, restart_count, images)
            .await
            .map_err(StepError::Failed)
    }

    /// The image that the container runs, and those that it mounts.
    async fn images_of(&self, container: &Container) -> Result<ContainerImages, StartFailure> {
        let puller = &self.context.images;
        Ok(ContainerImages {
            own: puller.ensure(&self.pod, container).await?,
            volumes: puller.ensure_volumes(&self.pod, container).await?,
        })
    }

    async fn create_and_start(
        &mut self,
        container: &Container,
        sandbox: &SandboxId,
        restart_count: Option<u32>,
        images: ContainerImages,
    ) -> Result<ContainerId, StartFailure> {
        let context = Arc::clone(&self.context);
        let host = &context.host;
        // Without a container in the runtime, the log directory shows the number of instances.
        let count = match restart_count {
            Some(count) => count,
            None => host.logged_restart_count(&self.pod, &container.name).await,
        };
        let driver = context.runtime_state.borrow().cgroup_driver;
        if !self.is_prepared() {
            let prepared = match self.volume_objects().await {
                Ok(objects) => host.prepare(&self.pod, driver, &objects).await,
                Err(error) => Err(error),
            };
            prepared.map_err(|error| {
                let kind = EventType::Warning;
                let recorder = &self.context.recorder;
                recorder.pod(&self.pod, None, kind, error.reason, &error.message);
                StartFailure::new(CONFIG_ERROR, error.message)
            })?;
        }
        let config = self.container_config(container, count, images).await?;
        let inputs = self.sandbox_inputs().await?;
        // Concurrently: writing the record takes about as long as creating the container.
        let recorded = self.context.records.flush();
        let (created, ()) = join(self.create(container, sandbox, config, inputs), recorded).await;
        let id = created?;
        self.start_by_id(container, &id, count).await?;
        Ok(id)
    }

    /// The inputs of the newest sandbox, which CreateContainer requires, too.
    async fn sandbox_inputs(&self) -> Result<SandboxInputs, StartFailure> {
        let driver = self.context.runtime_state.borrow().cgroup_driver;
        let newest = self.observed.sandboxes.first();
        let attempt = newest.map_or(0, |sandbox| sandbox.attempt);
        let inputs = self.context.host.sandbox_inputs(&self.pod, attempt, driver);
        let (inputs, _) = inputs
            .await
            .map_err(|error| StartFailure::new(CONFIG_ERROR, error.message))?;
        Ok(inputs)
    }

    /// True if the host was prepared for this version of the pod.
    fn is_prepared(&self) -> bool {
        self.prepared
            .as_ref()
            .is_some_and(|pod| Arc::ptr_eq(pod, &self.pod))
    }

    async fn create(
        &self,
        container: &Container,
        sandbox: &SandboxId,
        config: v1::ContainerConfig,
        inputs: SandboxInputs,
    ) -> Result<ContainerId, StartFailure> {
        let request = v1::CreateContainerRequest {
            pod_sandbox_id: sandbox.as_str().to_owned(),
            config: Some(config),
            sandbox_config: Some(sandbox_config(&self.pod, inputs)),
        };
        let call = self
            .context
            .drain
            .run(self.context.runtime.create_container(request));
        let answer = self.context.starts.run(call).await;
        let answer =
            answer.map_err(|error| StartFailure::new("CreateContainerError", chain(&error)));
        let failure = answer.as_ref().err().map(|failure| &*failure.message);
        let starts = &self.context.metrics.starts;
        starts.images_mounted(&self.pod, container, failure);
        let answer = answer?;
        let id = ContainerId::from(answer.container_id);
        self.context
            .pleg
            .learned_container(&self.pod.uid, &id, sandbox);
        let (kind, reason) = (EventType::Normal, event_reason::CREATED);
        self.event(&container.name, kind, reason, "Container created");
        Ok(id)
    }

    async fn start_by_id(
        &mut self,
        container: &Container,
        id: &ContainerId,
        count: u32,
    ) -> Result<(), StartFailure> {
        // Before the start: after a crash in between, the link would not be created later.
        self.context
            .host
            .link_log(&self.pod, &container.name, id, count)
            .await;
        self.record_pending_post_start(container, id).await;
        // The start creates a log with this restart count. With the record, a list that omits the
        // container does not have the next one started beside it.
        self.save_record();
        let request = v1::StartContainerRequest {
            container_id: id.as_str().to_owned(),
        };
        let runtime = Arc::clone(&self.context.runtime);
        let (pleg, uid, id) = (self.context.pleg.clone(), self.pod.uid.clone(), id.clone());
        // The call continues even if this task is dropped: containerd can keep a process of an
        // interrupted start, and then never removes its container.
        let call = self.context.drain.run_to_end(async move {
            // Before the call: the event may come before the response.
            pleg.starting(&id);
            let result = runtime.start_container(request).await;
            pleg.started(&uid, &id, result.is_ok());
            result
        });
        let result = self.context.starts.run(call).await;
        result.map_err(|error| StartFailure::new("RunContainerError", chain(&error)))?;
        let (kind, reason) = (EventType::Normal, event_reason::STARTED);
        self.event(&container.name, kind, reason, "Container started");
        Ok(())
    }
}

fn chain(error: &CriError) -> String {
    ErrorChain(error).to_string()
}
