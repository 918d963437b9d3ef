//! Sandboxes.

use rubelet_cri::v1::{
    self,
    ContainerEventType::{
        ContainerCreatedEvent, ContainerDeletedEvent, ContainerStartedEvent, ContainerStoppedEvent,
    },
};

use super::{
    RuntimeError, SimState,
    filter::{is_or_empty, selects},
};
use crate::{EntryKind, EventFlavour, fault};

pub(crate) struct Sandbox {
    pub(crate) id: String,
    pub(crate) metadata: v1::PodSandboxMetadata,
    pub(crate) config: v1::PodSandboxConfig,
    pub(crate) ready: bool,
    created_at: i64,
    ip: String,
    handler: String,
}

impl Sandbox {
    pub(crate) fn state(&self) -> v1::PodSandboxState {
        if self.ready {
            v1::PodSandboxState::SandboxReady
        } else {
            v1::PodSandboxState::SandboxNotready
        }
    }

    fn matches(&self, filter: Option<&v1::PodSandboxFilter>) -> bool {
        filter.is_none_or(|filter| {
            is_or_empty(&filter.id, &self.id)
                && filter
                    .state
                    .is_none_or(|state| state.state() == self.state())
                && selects(&filter.label_selector, &self.config.labels)
        })
    }

    fn summary(&self) -> v1::PodSandbox {
        v1::PodSandbox {
            id: self.id.clone(),
            metadata: Some(self.metadata.clone()),
            state: self.state().into(),
            created_at: self.created_at,
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            runtime_handler: self.handler.clone(),
        }
    }

    fn status(&self) -> v1::PodSandboxStatus {
        let linux = v1::LinuxPodSandboxStatus {
            namespaces: Some(v1::Namespace {
                options: namespaces(&self.config),
            }),
        };
        v1::PodSandboxStatus {
            id: self.id.clone(),
            metadata: Some(self.metadata.clone()),
            state: self.state().into(),
            created_at: self.created_at,
            network: Some(v1::PodSandboxNetworkStatus {
                ip: self.ip.clone(),
                additional_ips: Vec::new(),
            }),
            linux: Some(linux),
            labels: self.config.labels.clone(),
            annotations: self.config.annotations.clone(),
            runtime_handler: self.handler.clone(),
        }
    }
}

fn namespaces(config: &v1::PodSandboxConfig) -> Option<v1::NamespaceOption> {
    let security = config.linux.as_ref()?.security_context.as_ref()?;
    security.namespace_options.clone()
}

fn is_host_network(config: &v1::PodSandboxConfig) -> bool {
    namespaces(config).is_some_and(|options| options.network() == v1::NamespaceMode::Node)
}

impl SimState {
    pub(crate) fn run_pod_sandbox(
        &mut self,
        request: &v1::RunPodSandboxRequest,
    ) -> Result<v1::RunPodSandboxResponse, RuntimeError> {
        let config = request.config.clone().unwrap_or_default();
        let Some(metadata) = config.metadata.clone() else {
            return Err(RuntimeError::unknown(
                "sandbox config must include metadata",
            ));
        };
        let id = self.fresh_id();
        let v1::PodSandboxMetadata {
            name,
            namespace,
            uid,
            attempt,
        } = &metadata;
        self.reserve(
            "sandbox",
            &format!("{name}_{namespace}_{uid}_{attempt}"),
            &id,
        )?;
        let ip = if is_host_network(&config) {
            String::new()
        } else {
            let made = self.ids_issued;
            format!("10.88.{}.{}", made / 254 % 256, made % 254 + 1)
        };
        let sandbox = Sandbox {
            id: id.clone(),
            metadata,
            config,
            ready: true,
            created_at: self.clock.stamp(),
            ip,
            handler: request.runtime_handler.clone(),
        };
        self.record(EntryKind::SandboxReady {
            id: id.clone(),
            pod_uid: sandbox.metadata.uid.clone(),
            attempt: sandbox.metadata.attempt,
        });
        let uid = sandbox.metadata.uid.clone();
        self.sandboxes.insert(id.clone(), sandbox);
        self.emit_for_sandbox(ContainerCreatedEvent, &id, &uid);
        self.emit_for_sandbox(ContainerStartedEvent, &id, &uid);
        Ok(v1::RunPodSandboxResponse { pod_sandbox_id: id })
    }

    pub(crate) fn stop_pod_sandbox(
        &mut self,
        request: &v1::StopPodSandboxRequest,
    ) -> Result<v1::StopPodSandboxResponse, RuntimeError> {
        for id in self.containers_in(&request.pod_sandbox_id) {
            self.kill(&id);
        }
        self.end_sandbox(&request.pod_sandbox_id);
        Ok(v1::StopPodSandboxResponse::default())
    }

    pub(crate) fn pod_sandbox_status(
        &mut self,
        request: &v1::PodSandboxStatusRequest,
    ) -> Result<v1::PodSandboxStatusResponse, RuntimeError> {
        let sandbox = self.sandboxes.get(&request.pod_sandbox_id).ok_or_else(|| {
            RuntimeError::not_found("an error occurred when try to find sandbox: not found")
        })?;
        Ok(v1::PodSandboxStatusResponse {
            status: Some(sandbox.status()),
            ..Default::default()
        })
    }

    pub(crate) fn list_pod_sandbox(
        &mut self,
        request: &v1::ListPodSandboxRequest,
    ) -> Result<v1::ListPodSandboxResponse, RuntimeError> {
        let all = self.sandboxes.values();
        let some = all.filter(|sandbox| sandbox.matches(request.filter.as_ref()));
        let mut items = some.map(Sandbox::summary).collect();
        self.faults
            .lists
            .shorten("ListPodSandbox", &mut items, fault::of_sandbox);
        Ok(v1::ListPodSandboxResponse { items })
    }

    /// Ends the pause process and removes the network; the containers are unchanged.
    pub(crate) fn end_sandbox(&mut self, id: &str) {
        let Some(sandbox) = self.sandboxes.get_mut(id).filter(|sandbox| sandbox.ready) else {
            return;
        };
        sandbox.ready = false;
        sandbox.ip.clear();
        let uid = sandbox.metadata.uid.clone();
        self.record(EntryKind::SandboxStopped {
            id: id.to_owned(),
            pod_uid: uid.clone(),
        });
        self.emit_for_sandbox(ContainerStoppedEvent, id, &uid);
    }

    /// Removes the sandbox with its containers.
    pub(crate) fn drop_sandbox(&mut self, id: &str) {
        self.empty_sandbox(id);
        self.forget_sandbox(id);
    }

    /// Removes the containers of the sandbox, and emits the event of its removal while it still
    /// exists.
    pub(crate) fn empty_sandbox(&mut self, id: &str) {
        self.events.container_events_suppressed = self.events.flavour == EventFlavour::CriO;
        for container in self.containers_in(id) {
            self.drop_container(&container);
        }
        self.events.container_events_suppressed = false;
        self.end_sandbox(id);
        if let Some(sandbox) = self.sandboxes.get(id) {
            let uid = sandbox.metadata.uid.clone();
            self.emit_for_sandbox(ContainerDeletedEvent, id, &uid);
        }
    }

    /// Removes the empty sandbox.
    pub(crate) fn forget_sandbox(&mut self, id: &str) {
        if let Some(sandbox) = self.sandboxes.remove(id) {
            self.release_name(id);
            self.record(EntryKind::SandboxRemoved {
                id: id.to_owned(),
                pod_uid: sandbox.metadata.uid,
            });
        }
    }

    fn containers_in(&self, sandbox: &str) -> Vec<String> {
        let all = self
            .containers
            .values()
            .map(|container| &container.instance);
        let inside = all.filter(|instance| instance.sandbox_id == sandbox);
        inside.map(|instance| instance.id.clone()).collect()
    }
}
