//! From the node as the API server shows it, and what was measured, to the node as it should be.

use rubelet_base::event_reason;
use std::sync::Arc;

use jiff::Timestamp;
use rubelet_api::resources::Bytes;

use super::{
    NodeEvent, NodeFacts, NodeSettings,
    addresses::{self, AddressError},
    conditions::{
        DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, Transitions, set_pressure, set_ready,
    },
    object::{
        ContainerImage, Node, NodeAddress, NodeFeatures, NodeInfo, NodeRuntimeHandler, NodeSwap,
        Texts,
    },
    ready,
    registration::{LABEL_ARCH, LABEL_OS},
    resources::{self, NodeAmounts, is_extended},
};
use crate::eviction::Pressure;

/// What was measured, or is known without asking anybody.
#[derive(Debug, Clone)]
pub struct NodeObservation {
    /// Wall time.
    pub now: Timestamp,
    /// The addresses, or why they are unknown; then the former ones stay.
    pub addresses: Result<Vec<NodeAddress>, AddressError>,
    /// Bytes of the file system of volumes and logs; `None` if it can't be measured now.
    pub nodefs: Option<Bytes>,
    /// What runs short.
    pub pressure: Pressure,
    /// `containerRuntimeVersion`, such as `containerd://2.1.4`; empty while it is not known.
    pub runtime_version: Box<str>,
    /// Runtime handlers by name.
    pub handlers: Vec<NodeRuntimeHandler>,
    /// Whether the runtime supports `supplementalGroupsPolicy`; `None` if it does not report that.
    pub supplemental_groups: Option<bool>,
    /// Images, as [`super::images::listed`] gives them.
    pub images: Arc<[ContainerImage]>,
    /// Why the node is not ready for pods, in upstream's order; empty if it is.
    pub problems: Vec<String>,
    /// Port of the kubelet's HTTPS server; 0 without one.
    pub port: u16,
}

/// State of earlier computations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeUpdateState {
    transitions: Transitions,
    reboot_told: bool,
    unschedulable: bool,
}

/// The outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeUpdate {
    /// The node as it should be.
    pub node: Node,
    /// What happened, to be reported once.
    pub events: Vec<NodeEvent>,
    /// Why the node's addresses are unknown.
    pub address_problem: Option<AddressError>,
}

/// Computes the node from `shown`, the node as the API server shows it. What others wrote stays.
#[must_use]
pub fn update(
    settings: &NodeSettings,
    facts: &NodeFacts,
    observed: &NodeObservation,
    shown: &Node,
    state: &mut NodeUpdateState,
) -> NodeUpdate {
    let mut node = shown.clone();
    let mut events = Vec::new();
    for (label, value) in [(LABEL_OS, &facts.os), (LABEL_ARCH, &facts.architecture)] {
        if node.metadata.labels.get(label) != Some(value) {
            node.metadata.labels.insert(label.into(), value.clone());
        }
    }
    let addresses = &mut node.status.addresses;
    let annotations = &mut node.metadata.annotations;
    let set = addresses::set(settings, &observed.addresses, annotations, addresses);
    amounts(settings, facts, observed, &mut node);
    let boot_id = &shown.status.node_info.boot_id;
    if !boot_id.is_empty() && *boot_id != facts.boot_id && !state.reboot_told {
        state.reboot_told = true;
        events.push(NodeEvent {
            warning: true,
            reason: event_reason::REBOOTED,
            message: format!(
                "Node {} has been rebooted, boot id: {}",
                settings.name, facts.boot_id
            ),
        });
    }
    let status = &mut node.status;
    status.node_info = info(facts, observed, &shown.status.node_info);
    status.daemon_endpoints.kubelet_endpoint.port = observed.port;
    if *status.images != *observed.images {
        status.images = observed.images.to_vec();
    }
    status.runtime_handlers.clone_from(&observed.handlers);
    if let Some(known) = observed.supplemental_groups {
        status.features = Some(NodeFeatures {
            supplemental_groups_policy: Some(known),
        });
    }
    status
        .declared_features
        .clone_from(&settings.declared_features);
    // No volume of this agent is one that a controller attaches.
    status.volumes_in_use.clear();
    let reasons = conditions(settings, observed, &mut node, state);
    if node.spec.unschedulable != state.unschedulable {
        state.unschedulable = node.spec.unschedulable;
        events.push(NodeEvent::status(
            &settings.name,
            match node.spec.unschedulable {
                true => "NodeNotSchedulable",
                false => "NodeSchedulable",
            },
        ));
    }
    let told = reasons
        .into_iter()
        .flatten()
        .map(|reason| NodeEvent::status(&settings.name, reason));
    events.extend(told);
    NodeUpdate {
        node,
        events,
        address_problem: set.err(),
    }
}

/// Sets the four conditions, Ready as the last; the reasons of their events.
fn conditions(
    settings: &NodeSettings,
    observed: &NodeObservation,
    node: &mut Node,
    state: &mut NodeUpdateState,
) -> [Option<&'static str>; 4] {
    // Kubernetes keeps whole seconds.
    let now = Timestamp::from_second(observed.now.as_second()).unwrap_or(observed.now);
    let missing = ready::missing_capacity(&node.status.capacity, settings.local_storage);
    let mut problems = observed.problems.clone();
    problems.extend(missing);
    let problem = ready::joined(&problems);
    let list = &mut node.status.conditions;
    let transitions = &mut state.transitions;
    let Pressure { memory, disk, pid } = observed.pressure;
    [
        set_pressure(list, transitions, &MEMORY_PRESSURE, memory, now),
        set_pressure(list, transitions, &DISK_PRESSURE, disk, now),
        set_pressure(list, transitions, &PID_PRESSURE, pid, now),
        set_ready(list, transitions, problem.as_deref(), now),
    ]
}

/// Sets capacity and allocatable. Of resources that others made up, all is allocatable.
fn amounts(
    settings: &NodeSettings,
    facts: &NodeFacts,
    observed: &NodeObservation,
    node: &mut Node,
) {
    let status = &mut node.status;
    let known = NodeAmounts::from_texts(&status.capacity).ephemeral_storage;
    let capacity = resources::capacity(settings, facts, observed.nodefs.or(known));
    let left = resources::allocatable(&capacity, &settings.reserved, &settings.thresholds).texts();
    for (name, text) in capacity.texts() {
        resources::set(&mut status.capacity, &name, text);
    }
    let capacity: &Texts = &status.capacity;
    status
        .allocatable
        .retain(|name, _| capacity.contains_key(name) || !is_extended(name));
    for (name, text) in capacity {
        let text = left.get(name).unwrap_or(text).clone();
        resources::set(&mut status.allocatable, name, text);
    }
}

fn info(facts: &NodeFacts, observed: &NodeObservation, shown: &NodeInfo) -> NodeInfo {
    let container_runtime_version = match observed.runtime_version.is_empty() {
        true => shown.container_runtime_version.clone(),
        false => observed.runtime_version.clone(),
    };
    NodeInfo {
        architecture: facts.architecture.clone(),
        boot_id: facts.boot_id.clone(),
        container_runtime_version,
        kernel_version: facts.kernel_version.clone(),
        kube_proxy_version: "".into(),
        kubelet_version: facts.kubelet_version.clone(),
        machine_id: facts.machine_id.clone(),
        operating_system: facts.os.clone(),
        os_image: facts.os_image.clone(),
        swap: (facts.swap != 0).then_some(NodeSwap {
            capacity: facts.swap,
        }),
        system_uuid: facts.system_uuid.clone(),
    }
}
