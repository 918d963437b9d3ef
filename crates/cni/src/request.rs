//! What is asked of a pod's network, and what comes of it.

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

/// A port of the host that leads to a port of the pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortMapping {
    /// The protocol.
    pub protocol: Protocol,
    /// The port in the pod.
    pub container_port: u16,
    /// The port of the host. With 0 the port is only declared and leads nowhere.
    pub host_port: u16,
    /// The address of the host that the port is opened on; all addresses if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
}

/// How names are resolved in the pod; CNI plugins may ask for it.
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

/// A pod that is put on the network, or taken off it. The same values are given for both, as far
/// as they are still known: only `sandbox` is needed to remove a pod that was recorded.
#[derive(Debug, Clone, Default)]
pub struct NetworkRequest {
    /// The sandbox's id.
    pub sandbox: String,
    /// Where its network namespace is bound. When a pod is removed, it may be gone.
    pub netns: PathBuf,
    /// The pod's name.
    pub pod_name: String,
    /// The pod's namespace.
    pub pod_namespace: String,
    /// The pod's uid.
    pub pod_uid: String,
    /// Ports of the host that lead to the pod.
    pub port_mappings: Vec<PortMapping>,
    /// The pod's annotations.
    pub annotations: BTreeMap<String, String>,
    /// The pod's cgroup, as CNI's capability `cgroupPath` wants it.
    pub cgroup_parent: String,
    /// How names are resolved in the pod.
    pub dns: Dns,
}

/// What a pod got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkResult {
    /// The pod's addresses, the primary one first. Empty when the plugins gave none.
    pub ips: Vec<IpAddr>,
    /// The name of its interface inside: `eth0`.
    pub interface: String,
    /// The hardware address of its interface.
    pub mac: Option<String>,
    /// The host's end of its interface, where it is known.
    pub host_interface: Option<String>,
    /// What works less well than it should, for a log line or an event.
    pub warnings: Vec<String>,
}
