//! Input of a check: the expected network of the pod, and the state of its network namespace.

use std::net::{IpAddr, SocketAddr};

/// A target of a step, or the reason to skip that step.
pub type CheckInput<T> = Result<T, SkipReason>;

/// Why a step of a check is skipped: one line for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SkipReason(pub String);

impl<T: Into<String>> From<T> for SkipReason {
    fn from(reason: T) -> Self {
        Self(reason.into())
    }
}

/// Input of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckInputs {
    /// The addresses in the pod's status.
    pub addresses: Vec<IpAddr>,
    /// The interfaces of the network namespace, without loopback.
    pub interfaces: Vec<InterfaceState>,
    /// Its default routes.
    pub routes: Vec<DefaultRoute>,
    /// The nameservers of the pod.
    pub nameservers: Vec<IpAddr>,
    /// A name that they must know, without a final dot.
    pub name: CheckInput<String>,
    /// The Service of the API server.
    pub service: CheckInput<CheckTarget>,
    /// The API server, as the node reaches it.
    pub api_server: CheckInput<CheckTarget>,
    /// A host beyond this node; its port is ignored.
    pub outside: CheckInput<CheckTarget>,
}

/// A host or port to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckTarget {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceState {
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub up: bool,
    /// The longest packet that it takes, in bytes.
    pub mtu: u32,
    /// Its addresses, without those of the link.
    pub addresses: Vec<IpAddr>,
}

/// A default route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultRoute {
    /// The next hop; `None` if all hosts are on the link.
    pub gateway: Option<IpAddr>,
    /// The name of the interface.
    pub interface: String,
}
