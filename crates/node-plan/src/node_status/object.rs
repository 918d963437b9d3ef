//! The fields of the v1 Node that a kubelet reads or writes. Other fields are not stored and never
//! changed: only differences are sent.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Names and texts: labels, annotations, quantities.
pub type Texts = BTreeMap<Box<str>, Box<str>>;

/// A v1 Node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// `metadata`.
    pub metadata: NodeMeta,
    /// `spec`.
    pub spec: NodeSpec,
    /// `status`.
    pub status: NodeStatus,
}

impl Node {
    /// The object with `kind` and `apiVersion`, for its creation.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = json!(self);
        value["apiVersion"] = "v1".into();
        value["kind"] = "Node".into();
        value
    }
}

/// `metadata`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeMeta {
    /// `name`.
    pub name: Box<str>,
    /// `uid`; empty before the object was created.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: Box<str>,
    /// `resourceVersion`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub resource_version: Box<str>,
    /// `labels`.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub labels: Texts,
    /// `annotations`.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub annotations: Texts,
}

/// `spec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSpec {
    /// `podCIDRs`: addresses for the pods of this node.
    #[serde(rename = "podCIDRs", skip_serializing_if = "Vec::is_empty")]
    pub pod_cidrs: Vec<Box<str>>,
    /// `providerID`.
    #[serde(rename = "providerID", skip_serializing_if = "str::is_empty")]
    pub provider_id: Box<str>,
    /// `taints`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<NodeTaint>,
    /// `unschedulable`: the node is cordoned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
}

/// One entry of `taints`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeTaint {
    /// `key`.
    pub key: Box<str>,
    /// `value`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub value: Box<str>,
    /// `effect`.
    pub effect: Box<str>,
}

/// `status`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    /// `addresses`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// `allocatable`.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub allocatable: Texts,
    /// `capacity`.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub capacity: Texts,
    /// `conditions`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<NodeCondition>,
    /// `daemonEndpoints`.
    pub daemon_endpoints: DaemonEndpoints,
    /// `declaredFeatures`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub declared_features: Vec<Box<str>>,
    /// `features`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<NodeFeatures>,
    /// `images`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ContainerImage>,
    /// `nodeInfo`.
    pub node_info: NodeInfo,
    /// `runtimeHandlers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runtime_handlers: Vec<NodeRuntimeHandler>,
    /// `volumesInUse`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes_in_use: Vec<Box<str>>,
}

impl NodeStatus {
    /// The condition of that type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.conditions.iter().find(|one| *one.kind == *kind)
    }
}

/// One entry of `addresses`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// `type`: `InternalIP`, `Hostname` and others that only clouds set.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// `address`.
    pub address: Box<str>,
}

/// One entry of `conditions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeCondition {
    /// `type`.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// `status`: `True`, `False` or `Unknown`.
    pub status: Box<str>,
    /// `lastHeartbeatTime`: when the node last reported this, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Timestamp>,
    /// `lastTransitionTime`: when `status` last changed, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// `reason`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Box<str>,
    /// `message`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

/// `daemonEndpoints`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonEndpoints {
    /// `kubeletEndpoint`.
    pub kubelet_endpoint: DaemonEndpoint,
}

/// The endpoint of a daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonEndpoint {
    /// `Port`, written with a capital letter; 0 if nothing listens.
    #[serde(rename = "Port")]
    pub port: u16,
}

/// `features`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeFeatures {
    /// `supplementalGroupsPolicy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplemental_groups_policy: Option<bool>,
}

/// One entry of `images`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerImage {
    /// `names`: digests, then tags.
    pub names: Vec<Box<str>>,
    /// `sizeBytes`.
    pub size_bytes: u64,
}

/// `nodeInfo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeInfo {
    /// `architecture`.
    pub architecture: Box<str>,
    /// `bootID`.
    #[serde(rename = "bootID")]
    pub boot_id: Box<str>,
    /// `containerRuntimeVersion`, such as `containerd://2.1.4`.
    pub container_runtime_version: Box<str>,
    /// `kernelVersion`.
    pub kernel_version: Box<str>,
    /// `kubeProxyVersion`: always empty; upstream clears it too.
    pub kube_proxy_version: Box<str>,
    /// `kubeletVersion`.
    pub kubelet_version: Box<str>,
    /// `machineID`.
    #[serde(rename = "machineID")]
    pub machine_id: Box<str>,
    /// `operatingSystem`.
    pub operating_system: Box<str>,
    /// `osImage`.
    pub os_image: Box<str>,
    /// `swap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<NodeSwap>,
    /// `systemUUID`.
    #[serde(rename = "systemUUID")]
    pub system_uuid: Box<str>,
}

/// `swap` of `nodeInfo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSwap {
    /// `capacity` in bytes.
    pub capacity: u64,
}

/// One entry of `runtimeHandlers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeRuntimeHandler {
    /// `name`; empty for the runtime's default.
    pub name: Box<str>,
    /// `features`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<NodeRuntimeHandlerFeatures>,
}

/// `features` of a runtime handler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeRuntimeHandlerFeatures {
    /// `recursiveReadOnlyMounts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursive_read_only_mounts: Option<bool>,
    /// `userNamespaces`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_namespaces: Option<bool>,
}
