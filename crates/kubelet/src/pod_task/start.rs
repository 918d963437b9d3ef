//! Starting a container: image, files, configuration, create, start.

use std::sync::Arc;

use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::{ContainerId, ErrorChain, SandboxId};
use rubelet_cri::{CriError, v1};
use rubelet_pod_plan::cri_config::{
    ContainerInputs, SandboxInputs, container_config, env, mounts, sandbox_config, verify_non_root,
};

use super::{
    PodTask, StartFailure,
    apply::{Flow, removal},
};
use crate::{events::EventType, images::PresentImage};

/// What became of a start.
enum Started {
    Yes,
    Failed(StartFailure),
    /// The pod changed while the image was pulled, or is to be removed.
    Interrupted,
}

impl PodTask {
    pub(super) async fn start_container(
        &mut self,
        name: &str,
        sandbox: &SandboxId,
        restart_count: Option<u32>,
        after_exit: Option<Timestamp>,
    ) -> (Flow, bool) {
        let pod = Arc::clone(&self.pod);
        let Some(container) = pod.spec.container(name) else {
            return (Flow::Stop, false);
        };
        if let Some(finished_at) = after_exit {
            let max = self.context.settings.crash_backoff_max;
            self.history
                .note_restart(container, finished_at, self.context.clock.now(), max);
            // A start whose back-off was not recorded would start at once again after a crash of
            // the agent.
            self.save_record();
            self.context.records.flush().await;
        }
        let mut control = self.control.clone();
        // Cancel safety: an abandoned call may still have made a container; the list that follows
        // finds it by its label.
        let started = tokio::select! {
            biased;
            started = self.try_start(container, sandbox, restart_count) => started,
            () = removal(&mut control) => Started::Interrupted,
        };
        if matches!(started, Started::Yes) {
            self.prepared = Some(Arc::clone(&pod));
        }
        self.note_start(container, started)
    }

    pub(super) async fn start_created(&mut self, name: &str, id: &ContainerId) -> (Flow, bool) {
        let pod = Arc::clone(&self.pod);
        let Some(container) = pod.spec.container(name) else {
            return (Flow::Stop, false);
        };
        let count = self
            .observed
            .containers
            .iter()
            .find(|found| found.id == *id)
            .map_or(0, |found| found.restart_count);
        let mut control = self.control.clone();
        let started = tokio::select! {
            biased;
            started = self.start_by_id(container, id, count) => match started {
                Ok(()) => Started::Yes,
                Err(failure) => Started::Failed(failure),
            },
            () = removal(&mut control) => Started::Interrupted,
        };
        self.note_start(container, started)
    }

    fn note_start(&mut self, container: &Container, started: Started) -> (Flow, bool) {
        let context = &self.context;
        match started {
            Started::Yes => {
                self.history.note_started(&container.name);
                (Flow::Continue, true)
            }
            Started::Interrupted => {
                context.pleg.mark_unknown(&self.pod.uid);
                (Flow::Stop, false)
            }
            Started::Failed(failure) => {
                context.pleg.mark_unknown(&self.pod.uid);
                let now = context.clock.now();
                let StartFailure { reason, message } = &failure;
                let text = if rubelet_pod_plan::image::is_image_failure(reason) {
                    format!("Error: {reason}")
                } else {
                    format!("Error: {message}")
                };
                let name = Some(&*container.name);
                context
                    .recorder
                    .pod(&self.pod, name, EventType::Warning, "Failed", &text);
                self.history
                    .note_start_failed(container, reason, message, now);
                // Regular containers do not depend on each other; the next one is tried.
                (Flow::Continue, false)
            }
        }
    }

    async fn try_start(
        &self,
        container: &Container,
        sandbox: &SandboxId,
        restart_count: Option<u32>,
    ) -> Started {
        let image = {
            let mut control = self.control.clone();
            tokio::select! {
                biased;
                image = self.context.images.ensure(&self.pod, container) => image,
                // An edit may name another image: a pull that no one wants any more must not hold
                // up the pod.
                Ok(()) = control.changed() => return Started::Interrupted,
            }
        };
        let result = match image {
            Ok(image) => {
                self.create_and_start(container, sandbox, restart_count, image)
                    .await
            }
            Err(failure) => Err(failure),
        };
        match result {
            Ok(()) => Started::Yes,
            Err(failure) => Started::Failed(failure),
        }
    }

    async fn create_and_start(
        &self,
        container: &Container,
        sandbox: &SandboxId,
        restart_count: Option<u32>,
        image: PresentImage,
    ) -> Result<(), StartFailure> {
        let host = &self.context.host;
        let count = match restart_count {
            Some(count) => count,
            None => host.logged_restart_count(&self.pod, &container.name).await,
        };
        let driver = self.context.runtime_state.borrow().cgroup_driver;
        if !self.is_prepared() {
            host.prepare(&self.pod, driver)
                .await
                .map_err(|error| StartFailure::new("CreateContainerConfigError", error.message))?;
        }
        let config = self.container_config(container, count, image).await?;
        let attempt = self
            .observed
            .sandboxes
            .first()
            .map_or(0, |sandbox| sandbox.attempt);
        let (inputs, _) = host
            .sandbox_inputs(&self.pod, attempt, driver)
            .await
            .map_err(|error| StartFailure::new("CreateContainerConfigError", error.message))?;
        let id = self.create(container, sandbox, config, inputs).await?;
        self.start_by_id(container, &id, count).await
    }

    /// Whether the host has what this version of the pod needs.
    fn is_prepared(&self) -> bool {
        self.prepared
            .as_ref()
            .is_some_and(|pod| Arc::ptr_eq(pod, &self.pod))
    }

    async fn container_config(
        &self,
        container: &Container,
        count: u32,
        image: PresentImage,
    ) -> Result<v1::ContainerConfig, StartFailure> {
        let config_error =
            |message: String| StartFailure::new("CreateContainerConfigError", message);
        verify_non_root(&self.pod, container, &image.user).map_err(|error| {
            let (name, uid) = (&self.pod.name, &self.pod.uid);
            config_error(format!(
                "{error} (pod: \"{}_{}({uid})\", container: {})",
                name.name, name.namespace, container.name
            ))
        })?;
        let host = &self.context.host;
        let pod_ips = self.pod_ips();
        let values = env::environment(&self.pod, container, &host.env_context(pod_ips.clone()))
            .map_err(|error| config_error(error.to_string()))?;
        let files = host
            .container_files(&self.pod, &container.name, &values, &pod_ips)
            .await
            .map_err(|error| config_error(error.message))?;
        let mounts = mounts(container, &files).map_err(|error| config_error(error.to_string()))?;
        let (seccomp_root, seccomp_default) = host.seccomp();
        Ok(container_config(
            &self.pod,
            container,
            ContainerInputs {
                restart_count: count,
                image_id: image.id,
                image_user: image.user,
                env: values,
                mounts,
                resources: host.resources(&self.pod, container),
                seccomp_default,
                seccomp_root,
            },
        ))
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
        let answer = self
            .context
            .throttle
            .run(call)
            .await
            .map_err(|error| StartFailure::new("CreateContainerError", chain(&error)))?;
        let id = ContainerId::from(answer.container_id);
        self.context
            .pleg
            .learned_container(&self.pod.uid, &id, sandbox);
        self.event(container, "Created", "Container created");
        Ok(id)
    }

    async fn start_by_id(
        &self,
        container: &Container,
        id: &ContainerId,
        count: u32,
    ) -> Result<(), StartFailure> {
        // Before the start: an agent that dies in between would not make it up later.
        self.context
            .host
            .link_log(&self.pod, &container.name, id, count)
            .await;
        let request = v1::StartContainerRequest {
            container_id: id.as_str().to_owned(),
        };
        let runtime = Arc::clone(&self.context.runtime);
        let call = self
            .context
            .drain
            .run_to_end(async move { runtime.start_container(request).await });
        let result = self.context.throttle.run(call).await;
        self.context.pleg.mark(&self.pod.uid);
        result.map_err(|error| StartFailure::new("RunContainerError", chain(&error)))?;
        self.event(container, "Started", "Container started");
        Ok(())
    }

    fn event(&self, container: &Container, reason: &str, message: &str) {
        let name = Some(&*container.name);
        self.context
            .recorder
            .pod(&self.pod, name, EventType::Normal, reason, message);
    }

    fn pod_ips(&self) -> Vec<Box<str>> {
        if self.pod.spec.host_network {
            return self.context.settings.node_ips.clone();
        }
        self.observed
            .ready_sandbox()
            .map(|sandbox| sandbox.ips.clone())
            .unwrap_or_default()
    }
}

fn chain(error: &CriError) -> String {
    ErrorChain(error).to_string()
}
