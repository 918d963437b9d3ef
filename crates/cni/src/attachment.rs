//! The record of a pod on the network.

use std::{net::IpAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Cidr, NetworkRequest, PortMapping};

/// A pod that is on the network, or whose ADD or DEL is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attachment {
    /// The sandbox's id.
    pub(crate) sandbox: String,
    /// The pod, for messages.
    pub(crate) pod: PodRef,
    /// Path of its network namespace.
    pub(crate) netns: PathBuf,
    /// The way it was added, which determines how it is removed.
    pub(crate) how: AttachmentKind,
}

/// A pod's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PodRef {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl PodRef {
    pub(crate) fn of(request: &NetworkRequest) -> Self {
        Self {
            namespace: request.pod_namespace.clone(),
            name: request.pod_name.clone(),
            uid: request.pod_uid.clone(),
        }
    }

    /// A pod whose sandbox ID is the only known data.
    pub(crate) fn unknown(sandbox: &str) -> Self {
        Self {
            namespace: "unknown".to_owned(),
            name: sandbox.to_owned(),
            uid: String::new(),
        }
    }
}

impl std::fmt::Display for PodRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The way a pod was added to the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum AttachmentKind {
    /// On the bridge.
    Bridge(Lease),
    /// By plugins.
    Cni(CniAttachment),
}

/// The addresses and ports of a pod on the bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lease {
    /// Its addresses, the primary one first.
    pub(crate) addresses: Vec<IpAddr>,
    /// The range of each of them.
    pub(crate) ranges: Vec<Cidr>,
    /// The host's end of its interface.
    pub(crate) host_interface: String,
    /// Host ports mapped to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<PortMapping>,
}

/// The parameters of ADD, which are reused for DEL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CniAttachment {
    /// The configuration list at that time.
    pub(crate) config: serde_json::Value,
    /// `CNI_ARGS`.
    pub(crate) args: Vec<(String, String)>,
    /// Values for the plugins that declare a capability.
    pub(crate) capabilities: serde_json::Map<String, serde_json::Value>,
    /// The result of the last plugin; `None` until ADD has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<serde_json::Value>,
}

impl rubelet_store::Stored for Attachment {
    const KIND: &'static str = "network-attachment";
    const MIGRATIONS: &'static [rubelet_store::Migration] = &[];
}
