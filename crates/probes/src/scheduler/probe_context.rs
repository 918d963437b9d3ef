//! The target of one probe, shared between the prober and the attempt in progress.

use std::{sync::Arc, time::Duration};

use rubelet_api::{
    container::Container,
    pod::Pod,
    probe::{Probe, ProbeHandler},
};
use rubelet_base::ContainerId;
use rubelet_pod_plan::{ProbeKind, ProbeTarget};

/// A probe of one instance of a container.
#[derive(Debug)]
pub(super) struct ProbeContext {
    /// The pod.
    pub(super) pod: Arc<Pod>,
    /// The pod's address; empty while unknown.
    pub(super) ip: Box<str>,
    /// The kind of the probe.
    pub(super) kind: ProbeKind,
    /// The instance.
    pub(super) id: ContainerId,
    index: ContainerIndex,
}

/// The position of a container in the specification.
#[derive(Debug, Clone, Copy)]
enum ContainerIndex {
    Init(usize),
    Regular(usize),
}

impl ProbeContext {
    /// `None` if the pod does not have that container or the container not that probe.
    pub(super) fn new(pod: &Arc<Pod>, ip: &str, target: &ProbeTarget) -> Option<Self> {
        let find = |list: &[Container]| list.iter().position(|one| *one.name == *target.container);
        let index = match find(&pod.spec.containers) {
            Some(at) => ContainerIndex::Regular(at),
            None => ContainerIndex::Init(find(&pod.spec.init_containers)?),
        };
        target.kind.of(container(pod, index))?;
        Some(Self {
            pod: Arc::clone(pod),
            ip: ip.into(),
            kind: target.kind,
            id: target.id.clone(),
            index,
        })
    }

    /// The container.
    pub(super) fn container(&self) -> &Container {
        container(&self.pod, self.index)
    }

    /// The probe.
    pub(super) fn probe(&self) -> &Probe {
        let probe = self.kind.of(self.container());
        probe.expect("a context exists only for a container that has the probe")
    }

    /// True if this probe is the same as another one, so that their attempts count together.
    pub(super) fn same_probe(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pod, &other.pod) || self.probe() == other.probe()
    }

    /// True if the probe must wait for the pod's address.
    pub(super) fn lacks_address(&self) -> bool {
        let host = match &self.probe().handler {
            ProbeHandler::Exec(_) => return false,
            ProbeHandler::Http(get) => get.host.as_deref(),
            ProbeHandler::Tcp(socket) => socket.host.as_deref(),
            ProbeHandler::Grpc(_) => None,
        };
        self.ip.is_empty() && host.is_none_or(str::is_empty)
    }

    /// The timeout of one attempt.
    pub(super) fn timeout(&self) -> Duration {
        self.probe().timeout
    }
}

fn container(pod: &Pod, index: ContainerIndex) -> &Container {
    match index {
        ContainerIndex::Init(at) => &pod.spec.init_containers[at],
        ContainerIndex::Regular(at) => &pod.spec.containers[at],
    }
}
