//! The errors of the network.

use std::{io, net::IpAddr, path::PathBuf, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_host::{netlink::NetlinkError, netns::NetnsError};
use rubelet_store::{LoadError, RemoveError, SaveError};
use tokio::task::JoinError;

use crate::{Cidr, PluginError, SysctlError};

/// Why a pod could not be added to the network or removed from it. The text is one sentence for the
/// pod's events, with all causes.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The request is invalid; retrying does not help.
    #[error(transparent)]
    Refused(#[from] NetworkRefusal),
    /// The host or a plugin failed; retrying may help.
    #[error(transparent)]
    Failed(#[from] NetworkFailure),
    /// The pod's network is damaged.
    #[error(transparent)]
    Broken(#[from] NetworkDamage),
}

impl From<NetlinkError> for NetworkError {
    fn from(error: NetlinkError) -> Self {
        Self::Failed(NetworkFailure::Netlink(error))
    }
}

impl From<NetnsError> for NetworkError {
    fn from(error: NetnsError) -> Self {
        Self::Failed(NetworkFailure::Netns(error))
    }
}

/// What is invalid in a request or in the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkRefusal {
    /// The sandbox ID is no valid `CNI_CONTAINERID`.
    #[error("{0:?} is not a valid sandbox ID: use letters, digits, '_', '.' and '-'")]
    SandboxId(String),
    /// The bridge's name is no valid name of an interface.
    #[error(
        "{0:?} is not a valid name of the pods' bridge: use at most 15 letters, digits, '_' and '-', a letter first"
    )]
    BridgeName(String),
    /// A range is too small.
    #[error("the range {0} has no address for a pod: use a larger one")]
    RangeTooSmall(Cidr),
    /// A range has addresses that no interface of a pod can have.
    #[error("pods cannot have addresses of {0}: use a private range")]
    RangeNotUsable(Cidr),
    /// Two ranges have the same IP family.
    #[error("{one} and {other} are of the same IP family: use at most one range of each family")]
    SameFamily {
        /// A range.
        one: Cidr,
        /// The range after it.
        other: Cidr,
    },
    /// A range overlaps with a route of the host.
    #[error(
        "the pod range {range} overlaps with the route {destination}/{prefix} of interface {interface}: configure another range for pods"
    )]
    RangeOverlaps {
        /// The range.
        range: Cidr,
        /// The route's destination.
        destination: IpAddr,
        /// The prefix length of the destination.
        prefix: u8,
        /// The route's interface.
        interface: String,
    },
    /// No range is configured, and no default range is free.
    #[error(
        "each range that could be chosen for pods overlaps with a route of this host: configure the pods' range"
    )]
    NoFreeRange,
    /// Another pod has a host port.
    #[error(
        "host port {port} of pod {pod} is already in use by pod {holder} (sandbox {sandbox}): change the hostPort of one of them"
    )]
    HostPortInUse {
        /// The host port, with its address and protocol.
        port: String,
        /// The pod.
        pod: String,
        /// The pod that has the port.
        holder: String,
        /// The sandbox of that pod.
        sandbox: String,
    },
    /// A pod maps a host port twice.
    #[error(
        "pod {pod} maps host port {port} to both of its ports {one} and {other}: change one hostPort"
    )]
    HostPortTwice {
        /// The pod.
        pod: String,
        /// The host port, with its address and protocol.
        port: String,
        /// A port of the pod.
        one: u16,
        /// The other port of the pod.
        other: u16,
    },
    /// A host port is on the IPv6 loopback address.
    #[error(
        "pod {pod} has host port {port} with hostIP ::1, which the kernel cannot forward to a pod: use 127.0.0.1"
    )]
    HostPortOnLoopback {
        /// The pod.
        pod: String,
        /// The host port.
        port: u16,
    },
    /// A host port is on an address of an IP family that pods do not have.
    #[error(
        "pod {pod} has host port {port} with hostIP {ip}, but pods have no addresses of that IP family"
    )]
    HostPortFamily {
        /// The pod.
        pod: String,
        /// The host port.
        port: u16,
        /// The host's address.
        ip: IpAddr,
    },
    /// A pod has host ports, whose table is not in force.
    #[error("pod {pod} has host ports, which need nftables in the kernel: {why}")]
    HostPortsWithoutTable {
        /// The pod.
        pod: String,
        /// The error of the table.
        why: String,
    },
    /// A value contains a separator of `CNI_ARGS`.
    #[error("{key} cannot be {value:?}: in CNI_ARGS '=' and ';' separate arguments")]
    CniArgument {
        /// The argument.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// An annotation has an invalid bandwidth.
    #[error("the annotation {annotation} is {value:?}, not a quantity from 1k to 1P")]
    Bandwidth {
        /// The annotation.
        annotation: String,
        /// Its value.
        value: String,
    },
}

/// What failed on the host or in a plugin.
#[derive(Debug, thiserror::Error)]
pub enum NetworkFailure {
    /// A netlink request failed.
    #[error("{}", ErrorChain(.0))]
    Netlink(NetlinkError),
    /// The kernel does not support a type of interface.
    #[error("{}: the kernel has no module {module}", ErrorChain(error))]
    NoModule {
        /// The kernel module of the type.
        module: &'static str,
        /// The error.
        error: NetlinkError,
    },
    /// A network namespace can't be used.
    #[error("{}", ErrorChain(.0))]
    Netns(NetnsError),
    /// A kernel parameter can't be set.
    #[error("{}", ErrorChain(.0))]
    KernelParameter(SysctlError),
    /// A kernel parameter with a certain purpose can't be set.
    #[error("cannot {purpose}: {}", ErrorChain(error))]
    KernelParameterFor {
        /// The purpose; it continues a sentence.
        purpose: &'static str,
        /// The error.
        error: SysctlError,
    },
    /// The directory of records can't be read.
    #[error("cannot read the records of pod networks in {}: {error}", dir.display())]
    ReadRecords {
        /// The directory.
        dir: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A record can't be loaded.
    #[error("{}", ErrorChain(.0))]
    LoadRecord(Box<LoadError>),
    /// A record can't be saved.
    #[error("{}", ErrorChain(.0))]
    SaveRecord(SaveError),
    /// A record can't be removed.
    #[error("{}", ErrorChain(.0))]
    RemoveRecord(RemoveError),
    /// A blocking operation did not end as it should.
    #[error("an operation of the network panicked or was cancelled: {0}")]
    Operation(JoinError),
    /// There is no range for pods.
    #[error("no range of pod addresses is configured")]
    NoRange,
    /// All addresses of a range are in use.
    #[error(
        "no address is free in {range}: all {taken} are in use by pods; configure a larger range, or a smaller maxPods"
    )]
    NoAddress {
        /// The range.
        range: Cidr,
        /// Number of addresses in use.
        taken: usize,
    },
    /// Addresses become free when the interfaces that have them are deleted.
    #[error("no address is free yet: the interfaces of removed pods are still being deleted")]
    AddressesPending,
    /// The bridge was removed during its setup.
    #[error("the bridge {0} was removed meanwhile")]
    BridgeRemoved(String),
    /// The bridge was removed while a pod was being added.
    #[error("the bridge {0} does not exist any more")]
    BridgeGone(String),
    /// The bridge's name belongs to an interface of another type.
    #[error("the interface {0} is not a bridge: choose another name for the pods' bridge")]
    NotABridge(String),
    /// The host's end of a pod's interface was removed.
    #[error("the interface {0} does not exist any more")]
    InterfaceGone(String),
    /// The pod's end of its interface was removed.
    #[error("the interface {0} is missing in the pod's network namespace")]
    PodInterfaceGone(&'static str),
    /// The table of source addresses is not in force.
    #[error("cannot restrict pod {pod} to its own addresses: {why}")]
    SenderTable {
        /// The pod.
        pod: String,
        /// The error of the table.
        why: String,
    },
    /// The table that isolates pods is not in force.
    #[error("cannot isolate pod {pod} from other pods (isolatePods): {why}")]
    Isolation {
        /// The pod.
        pod: String,
        /// The error of the table.
        why: String,
    },
    /// There is no valid CNI configuration.
    #[error("{0}")]
    Configuration(String),
    /// The configuration that a pod was added with is not valid any more.
    #[error("the recorded CNI configuration of a pod {reason}")]
    RecordedConfiguration {
        /// The error; it continues the sentence.
        reason: String,
    },
    /// A plugin is missing, or reports that it is not ready.
    #[error("the network {network} is not ready: {}", ErrorChain(error))]
    NotReady {
        /// The network.
        network: String,
        /// The error.
        error: Box<PluginError>,
    },
    /// A plugin failed to add a pod.
    #[error("cannot add pod {pod} to the network {network}: {}", ErrorChain(error))]
    Add {
        /// The pod.
        pod: String,
        /// The network.
        network: String,
        /// The error.
        error: Box<PluginError>,
    },
    /// A plugin failed to remove a pod.
    #[error(
        "cannot remove sandbox {sandbox} from the network {network}: {}",
        ErrorChain(error)
    )]
    Remove {
        /// The pod's sandbox.
        sandbox: String,
        /// The network.
        network: String,
        /// The error.
        error: Box<PluginError>,
    },
    /// A file of the CNI result cache can't be removed.
    #[error("cannot remove a CNI result in {}: {error}", dir.display())]
    ResultCache {
        /// The cache.
        dir: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// GC was stopped at its deadline.
    #[error(
        "GC of the CNI plugins of the network {network} did not finish within {} s",
        deadline.as_secs()
    )]
    CollectGarbageDeadline {
        /// The network.
        network: String,
        /// The deadline.
        deadline: Duration,
    },
    /// There was no moment for GC.
    #[error("GC of the CNI plugins was skipped: pods were being added all the time")]
    CollectGarbageSkipped,
    /// Some of several operations failed; the text of each.
    #[error("{}", .0.join("; "))]
    Several(Vec<String>),
}

/// What is missing of a pod's network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkDamage {
    /// The pod is not on the network.
    #[error("sandbox {0} is not attached to the network")]
    NotAttached(String),
    /// The pod has no lease.
    #[error("sandbox {0} has no IP address")]
    NoAddress(String),
    /// The plugins never added the pod completely.
    #[error("sandbox {sandbox} was never completely added to the network {network}")]
    Incomplete {
        /// The pod's sandbox.
        sandbox: String,
        /// The network.
        network: String,
    },
    /// The pod's network namespace can't be opened.
    #[error("{}", ErrorChain(.0))]
    Netns(NetnsError),
    /// The host's end of the pod's interface is missing.
    #[error("the interface {0} is missing on the host")]
    InterfaceMissing(String),
    /// The host's end of the pod's interface is down.
    #[error("the interface {0} is down")]
    InterfaceDown(String),
    /// The host's end of the pod's interface is not a port of the bridge.
    #[error("the interface {interface} is not attached to the bridge {bridge}")]
    NotOnBridge {
        /// The interface.
        interface: String,
        /// The bridge.
        bridge: String,
    },
    /// The pod's end of its interface is missing.
    #[error("the interface {0} is missing in the pod")]
    PodInterfaceMissing(&'static str),
    /// The pod's end of its interface is down.
    #[error("the interface {0} in the pod is down")]
    PodInterfaceDown(&'static str),
    /// The pod has lost an address.
    #[error("the address {0} is missing in the pod")]
    AddressMissing(IpAddr),
    /// The pod has lost its default route.
    #[error("the default route by {0} is missing in the pod")]
    DefaultRouteMissing(IpAddr),
    /// A plugin reported the damage.
    #[error("{}", ErrorChain(.0))]
    Plugin(Box<PluginError>),
}
