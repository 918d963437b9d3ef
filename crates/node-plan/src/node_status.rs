//! The node object: its registration, its status, and when that is sent.
//!
//! - [`object`]: the fields of the object that a kubelet reads or writes.
//! - [`resources`]: capacity, reservations and allocatable resources.
//! - [`hard_thresholds`]: the part of the capacity that eviction keeps free.
//! - [`conditions`], [`ready`]: the four conditions, their transitions and events.
//! - [`addresses`], [`images`]: two lists of the status.
//! - [`registration`]: the initial object, and the corrections of an existing one.
//! - [`update`]: the new object from the last known one and measurements.
//! - [`patch`]: the difference as a patch; [`schedule`]: the time of a report without a change.
//!
//! Source of rules, texts and numbers: `pkg/kubelet/kubelet_node_status.go` and
//! `pkg/kubelet/nodestatus` of Kubernetes 1.36.

pub mod addresses;
pub mod conditions;
pub mod hard_thresholds;
pub mod images;
pub mod object;
pub mod patch;
pub mod ready;
pub mod registration;
pub mod resources;
pub mod schedule;
pub mod update;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use rubelet_api::resources::Bytes;

use self::{hard_thresholds::HardThresholds, object::NodeTaint, resources::Reserved};

/// The node's part of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSettings {
    /// Name of the node, which is also its host name for the cluster.
    pub name: Box<str>,
    /// `--node-labels`.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// `registerWithTaints`.
    pub taints: Vec<NodeTaint>,
    /// `providerID`; empty if not set.
    pub provider_id: Box<str>,
    /// `--cloud-provider=external`: a controller of the cloud completes the node.
    pub external_cloud: bool,
    /// `--node-ip`: none, one, or one of each family. An unspecified one only says which family is
    /// preferred.
    pub node_ips: Vec<IpAddr>,
    /// `registerNode`: true if the agent creates the object.
    pub register: bool,
    /// `enableControllerAttachDetach`.
    pub controller_attach_detach: bool,
    /// `maxPods`.
    pub max_pods: u64,
    /// `podsPerCore`; 0 means no limit.
    pub pods_per_core: u64,
    /// `systemReserved`, `kubeReserved` and `reservedSystemCPUs` together.
    pub reserved: Reserved,
    /// `evictionHard`: what is kept free, and so is not allocatable.
    pub thresholds: HardThresholds,
    /// `nodeStatusMaxImages`; `None` means all.
    pub max_images: Option<usize>,
    /// `localStorageCapacityIsolation`: true if ephemeral storage is accounted.
    pub local_storage: bool,
    /// Features of the node that the scheduler may rely on, sorted.
    pub declared_features: Vec<Box<str>>,
    /// `nodeStatusUpdateFrequency`: how often the status is computed.
    pub update_frequency: Duration,
    /// `nodeStatusReportFrequency`: how often an unchanged status is sent.
    pub report_frequency: Duration,
    /// `nodeLeaseDurationSeconds`.
    pub lease_duration: Duration,
}

/// Settings of a node of that name with the kubelet's defaults.
impl NodeSettings {
    /// The defaults of KubeletConfiguration, without reservations and thresholds.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            provider_id: "".into(),
            external_cloud: false,
            node_ips: Vec::new(),
            register: true,
            controller_attach_detach: true,
            max_pods: 110,
            pods_per_core: 0,
            reserved: Reserved::default(),
            thresholds: HardThresholds::default(),
            max_images: Some(50),
            local_storage: true,
            declared_features: Vec::new(),
            update_frequency: Duration::from_secs(10),
            report_frequency: Duration::from_secs(300),
            lease_duration: Duration::from_secs(40),
        }
    }
}

/// Facts of the machine that do not change while the agent runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Processors.
    pub cpus: u64,
    /// Memory in bytes.
    pub memory: Bytes,
    /// Swap space in bytes.
    pub swap: Bytes,
    /// Huge pages set aside: page size and bytes.
    pub hugepages: BTreeMap<Bytes, Bytes>,
    /// `machineID`; empty on machines without one.
    pub machine_id: Box<str>,
    /// `systemUUID`: that of the hardware.
    pub system_uuid: Box<str>,
    /// `bootID`.
    pub boot_id: Box<str>,
    /// `kernelVersion`.
    pub kernel_version: Box<str>,
    /// `osImage`, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os_image: Box<str>,
    /// `operatingSystem`: `linux`.
    pub os: Box<str>,
    /// `architecture` by Go's names, such as `amd64`.
    pub architecture: Box<str>,
    /// `kubeletVersion`, such as `v1.36.0`.
    pub kubelet_version: Box<str>,
}

/// An event about the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// True for the type `Warning`.
    pub warning: bool,
    /// `reason`.
    pub reason: &'static str,
    /// `message`.
    pub message: String,
}

impl NodeEvent {
    /// The event for a new status of the node.
    #[must_use]
    pub fn status(node: &str, reason: &'static str) -> Self {
        Self {
            warning: false,
            reason,
            message: format!("Node {node} status is now: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests;
