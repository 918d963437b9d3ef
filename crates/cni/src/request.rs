//! Requests to a pod's network, and their results.

use std::{collections::BTreeMap, fmt, net::IpAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

/// A transport protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// The number in the IP header.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        })
    }
}

/// A host port that is mapped to a port of the pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortMapping {
    /// The protocol.
    pub protocol: Protocol,
    /// The port in the pod.
    pub container_port: u16,
    /// The port of the host. 0 means that the port is only declared, without a mapping.
    pub host_port: u16,
    /// The host address that the port is opened on; `None` means all addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
}

/// DNS settings of the pod; CNI plugins may request them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    /// Name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Search domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<String>,
    /// Options of the resolver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A pod that is added to the network, or removed from it. Both calls get the same values, as far
/// as they are still known: only `sandbox` is needed to remove a recorded pod.
#[derive(Debug, Clone, Default)]
pub struct NetworkRequest {
    /// The sandbox's id.
    pub sandbox: String,
    /// Path of its network namespace. It may be gone when a pod is removed.
    pub netns: PathBuf,
    /// The pod's name.
    pub pod_name: String,
    /// The pod's namespace.
    pub pod_namespace: String,
    /// The pod's uid.
    pub pod_uid: String,
    /// Host ports mapped to the pod.
    pub port_mappings: Vec<PortMapping>,
    /// The pod's annotations.
    pub annotations: BTreeMap<String, String>,
    /// The pod's cgroup, for CNI's capability `cgroupPath`.
    pub cgroup_parent: String,
    /// DNS settings of the pod.
    pub dns: Dns,
}

/// The network of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkResult {
    /// The pod's addresses, the primary one first. Empty if the plugins returned none.
    pub ips: Vec<IpAddr>,
    /// The name of its interface inside: `eth0`.
    pub interface: String,
    /// The hardware address of its interface.
    pub mac: Option<String>,
    /// The host's end of its interface, if known.
    pub host_interface: Option<String>,
    /// Problems that do not keep the pod from starting, for a log line or an event.
    pub warnings: Vec<String>,
}
