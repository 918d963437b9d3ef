//! What is recorded of a pod on the network.

use std::{net::IpAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Cidr, NetworkRequest, PortMapping};

/// A pod that is on the network, or half on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attachment {
    /// The sandbox's id.
    pub(crate) sandbox: String,
    /// Whose it is, for messages.
    pub(crate) pod: PodRef,
    /// Where its network namespace was bound.
    pub(crate) netns: PathBuf,
    /// How it was put on the network, and so how it is taken off.
    pub(crate) how: How,
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

    /// A pod of which nothing but its sandbox is known.
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

/// How a pod was put on the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum How {
    /// On the bridge.
    Bridge(Lease),
    /// By plugins.
    Cni(Plugged),
}

/// What a pod on the bridge has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lease {
    /// Its addresses, the primary one first.
    pub(crate) addresses: Vec<IpAddr>,
    /// The range of each of them.
    pub(crate) ranges: Vec<Cidr>,
    /// The host's end of its interface.
    pub(crate) host_interface: String,
    /// Ports of the host that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<PortMapping>,
}

/// What plugins were asked for. They are asked the same when the pod goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plugged {
    /// The configuration list as it was.
    pub(crate) config: serde_json::Value,
    /// `CNI_ARGS`.
    pub(crate) args: Vec<(String, String)>,
    /// Values for the plugins that declare a capability.
    pub(crate) capabilities: serde_json::Map<String, serde_json::Value>,
    /// What the last plugin answered; nothing while or unless adding succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<serde_json::Value>,
}

impl rubelet_store::Stored for Attachment {
    const KIND: &'static str = "network-attachment";
    const MIGRATIONS: &'static [rubelet_store::Migration] = &[];
}
