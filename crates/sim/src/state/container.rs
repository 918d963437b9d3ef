//! Containers, and their reported state.

use std::{sync::Arc, time::Duration};

use rubelet_cri::v1::{
    self,
    ContainerEventType::{ContainerCreatedEvent, ContainerDeletedEvent},
};

use super::{
    RuntimeError, SimState,
    filter::{is_or_empty, selects},
};
use crate::{Behavior, EntryKind, Instance};

pub(crate) struct Container {
    pub(crate) instance: Arc<Instance>,
    pub(crate) config: v1::ContainerConfig,
    pub(super) image_id: String,
    pub(super) log_path: String,
    pub(super) created_at: i64,
    pub(super) started_at: i64,
    pub(super) finished_at: i64,
    pub(super) phase: Phase,
    pub(super) resources: Option<v1::ContainerResources>,
    pub(crate) memory: u64,
    pub(crate) log: Vec<String>,
    /// The state that the runtime reports, if it is not the real one.
    pub(crate) override_state: Option<v1::ContainerState>,
    /// Its process; 0 before it is started.
    pub(crate) pid: u32,
    /// The process has exited without the runtime noticing; with the exit code if the kernel reports it.
    pub(crate) gone: Option<Option<i32>>,
}

pub(super) enum Phase {
    Created,
    Running {
        behavior: Behavior,
        /// When it will exit by itself, and how.
        end: Option<(Duration, i32, &'static str)>,
        sigterm_sent: bool,
    },
    Exited {
        code: i32,
        reason: String,
        message: String,
        /// When the reason becomes known; until then it is the one that belongs to the code.
        known: Duration,
    },
}

impl Container {
    /// The state that the runtime reports.
    pub(crate) fn state(&self) -> v1::ContainerState {
        if let Some(override_state) = self.override_state {
            return override_state;
        }
        match self.phase {
            Phase::Created => v1::ContainerState::ContainerCreated,
            Phase::Running { .. } => v1::ContainerState::ContainerRunning,
            Phase::Exited { .. } => v1::ContainerState::ContainerExited,
        }
    }

    fn matches(&self, filter: Option<&v1::ContainerFilter>) -> bool {
        filter.is_none_or(|filter| {
            is_or_empty(&filter.id, &self.instance.id)
                && is_or_empty(&filter.pod_sandbox_id, &self.instance.sandbox_id)
                && filter
                    .state
                    .is_none_or(|state| state.state() == self.state())
                && selects(&filter.label_selector, &self.config.labels)
        })
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// How long after the exit the runtime learns the reason.
    pub(super) fn reason_lag(&self) -> Duration {
        match &self.phase {
            Phase::Running { behavior, .. } => behavior.reason_lag,
            _ => Duration::ZERO,
        }
    }

    pub(super) fn metadata(&self) -> Option<v1::ContainerMetadata> {
        self.config.metadata.clone()
    }

    fn summary(&self) -> v1::Container {
        v1::Container {
            id: self.instance.id.clone(),
            pod_sandbox_id: self.instance.sandbox_id.clone(),
            metadata: self.metadata(),
            image: self.config.image.clone(),
            image_ref: self.image_id.clone(),
            image_id: self.image_id.clone(),
            state: self.state().into(),
            created_at: self.created_at,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
        }
    }

    fn status(&self, image: Option<&v1::Image>, now: Duration) -> v1::ContainerStatus {
        let first =
            |names: fn(&v1::Image) -> &Vec<String>| image.and_then(|image| names(image).first());
        let name = first(|image| &image.repo_tags).or(first(|image| &image.repo_digests));
        let digest = first(|image| &image.repo_digests).unwrap_or(&self.image_id);
        let spec = v1::ImageSpec {
            image: name.unwrap_or(&self.image_id).clone(),
            ..self.config.image.clone().unwrap_or_default()
        };
        let ended = self.state() == v1::ContainerState::ContainerExited;
        let (exit_code, reason, message) = match &self.phase {
            Phase::Exited { code, known, .. } if ended && now < *known => {
                (*code, plain_reason(*code).to_owned(), String::new())
            }
            Phase::Exited {
                code,
                reason,
                message,
                ..
            } if ended => (*code, reason.clone(), message.clone()),
            _ => (0, String::new(), String::new()),
        };
        let finished_at = if ended { self.finished_at } else { 0 };
        let mut status = v1::ContainerStatus {
            id: self.instance.id.clone(),
            metadata: self.metadata(),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at,
            exit_code,
            image: Some(spec),
            image_ref: digest.clone(),
            image_id: self.image_id.clone(),
            reason,
            message,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            mounts: self.config.mounts.clone(),
            log_path: self.log_path.clone(),
            resources: self.resources.clone(),
            ..Default::default()
        };
        status.set_state(self.state());
        status.set_stop_signal(match self.config.stop_signal() {
            v1::Signal::RuntimeDefault => v1::Signal::Sigterm,
            signal => signal,
        });
        status
    }
}

/// The reason that belongs to an exit code, if nothing else is known.
pub(super) fn plain_reason(code: i32) -> &'static str {
    if code == 0 { "Completed" } else { "Error" }
}

/// The absolute log path, from the configurations of sandbox and container.
fn log_path(sandbox: &v1::PodSandboxConfig, container: &v1::ContainerConfig) -> String {
    if sandbox.log_directory.is_empty() || container.log_path.is_empty() {
        return String::new();
    }
    format!("{}/{}", sandbox.log_directory, container.log_path)
}

impl SimState {
    pub(crate) fn create_container(
        &mut self,
        request: &v1::CreateContainerRequest,
    ) -> Result<v1::CreateContainerResponse, RuntimeError> {
        let sandbox_id = request.pod_sandbox_id.clone();
        let Some(sandbox) = self.sandboxes.get(&sandbox_id) else {
            return Err(RuntimeError::not_found(format!(
                "failed to find sandbox id {sandbox_id:?}: not found"
            )));
        };
        if !sandbox.ready {
            return Err(RuntimeError::unknown(format!(
                "sandbox container {sandbox_id:?} is not running"
            )));
        }
        let config = request.config.clone().unwrap_or_default();
        let Some(metadata) = &config.metadata else {
            return Err(RuntimeError::unknown(
                "container config must include metadata",
            ));
        };
        let Some(pod) = request
            .sandbox_config
            .as_ref()
            .and_then(|config| config.metadata.as_ref())
        else {
            return Err(RuntimeError::unknown(
                "pod sandbox config must include metadata",
            ));
        };
        let pod_uid = sandbox.metadata.uid.clone();
        let log_path = log_path(&sandbox.config, &config);
        let image = config.image.clone().unwrap_or_default().image;
        let v1::ContainerMetadata { name, attempt } = metadata.clone();
        let id = self.fresh_id();
        let reserved = format!(
            "{name}_{}_{}_{}_{attempt}",
            pod.name, pod.namespace, pod.uid
        );
        self.reserve("container", &reserved, &id)?;
        let Some(image_id) = self.images.find(&image).map(|image| image.id.clone()) else {
            self.release_name(&id);
            return Err(RuntimeError::not_found(format!(
                "failed to resolve image {image:?}: not found"
            )));
        };
        let instance = Arc::new(Instance {
            id: id.clone(),
            sandbox_id,
            pod_uid,
            name,
            attempt,
        });
        let linux = config.linux.as_ref();
        let resources = linux.and_then(|linux| linux.resources.clone());
        let container = Container {
            instance: instance.clone(),
            image_id,
            log_path,
            created_at: self.clock.stamp(),
            started_at: 0,
            finished_at: 0,
            phase: Phase::Created,
            resources: resources.map(|linux| v1::ContainerResources {
                linux: Some(linux),
                ..Default::default()
            }),
            memory: 0,
            log: Vec::new(),
            override_state: None,
            pid: 0,
            gone: None,
            config,
        };
        self.containers.insert(id.clone(), container);
        self.record(EntryKind::ContainerCreated(instance.clone()));
        self.emit_for_container(ContainerCreatedEvent, self.clock.now(), &instance);
        Ok(v1::CreateContainerResponse { container_id: id })
    }

    pub(crate) fn remove_container(
        &mut self,
        request: &v1::RemoveContainerRequest,
    ) -> Result<v1::RemoveContainerResponse, RuntimeError> {
        self.drop_container(&request.container_id);
        Ok(v1::RemoveContainerResponse::default())
    }

    pub(crate) fn list_containers(
        &mut self,
        request: &v1::ListContainersRequest,
    ) -> Result<v1::ListContainersResponse, RuntimeError> {
        let all = self.containers.values();
        let some = all.filter(|container| container.matches(request.filter.as_ref()));
        let mut items: Vec<_> = some
            .map(|container| (container.instance.clone(), container.summary()))
            .collect();
        let lists = &mut self.faults.lists;
        lists.shorten("ListContainers", &mut items, |(instance, _)| {
            instance.subject()
        });
        Ok(v1::ListContainersResponse {
            containers: items.into_iter().map(|(_, summary)| summary).collect(),
        })
    }

    pub(crate) fn container_status(
        &mut self,
        request: &v1::ContainerStatusRequest,
    ) -> Result<v1::ContainerStatusResponse, RuntimeError> {
        let container = self.container(&request.container_id)?;
        let image = self.images.find(&container.image_id);
        Ok(v1::ContainerStatusResponse {
            status: Some(container.status(image, self.clock.now())),
            info: match request.verbose {
                true => [("info".to_owned(), format!("{{\"pid\":{}}}", container.pid))].into(),
                false => Default::default(),
            },
        })
    }

    pub(crate) fn update_container_resources(
        &mut self,
        request: &v1::UpdateContainerResourcesRequest,
    ) -> Result<v1::UpdateContainerResourcesResponse, RuntimeError> {
        self.container(&request.container_id)?;
        if let Some(container) = self.containers.get_mut(&request.container_id) {
            container.resources = Some(v1::ContainerResources {
                linux: request.linux.clone(),
                ..Default::default()
            });
        }
        Ok(v1::UpdateContainerResourcesResponse::default())
    }

    pub(crate) fn reopen_container_log(
        &mut self,
        request: &v1::ReopenContainerLogRequest,
    ) -> Result<v1::ReopenContainerLogResponse, RuntimeError> {
        let container = self.container(&request.container_id)?;
        if !container.is_running() {
            return Err(RuntimeError::unknown("container is not running"));
        }
        let instance = container.instance.clone();
        self.record(EntryKind::LogReopened(instance));
        Ok(v1::ReopenContainerLogResponse::default())
    }

    pub(crate) fn container(&self, id: &str) -> Result<&Container, RuntimeError> {
        self.containers.get(id).ok_or_else(|| {
            RuntimeError::not_found(format!(
                "an error occurred when try to find container {id:?}: not found"
            ))
        })
    }

    /// Removes the container, and kills it first if it runs.
    pub(super) fn drop_container(&mut self, id: &str) {
        self.kill(id);
        if let Some(container) = self.containers.remove(id) {
            self.release_name(id);
            self.record(EntryKind::ContainerRemoved(container.instance.clone()));
            self.emit_for_container(ContainerDeletedEvent, self.clock.now(), &container.instance);
        }
    }
}
