//! Ports, DNS and host names.

/// One entry of `ports`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPort {
    /// `name`.
    pub name: Option<Box<str>>,
    /// `containerPort`.
    pub container_port: u16,
    /// `hostPort`; with host network it equals the container's port.
    pub host_port: Option<u16>,
    /// `hostIP`.
    pub host_ip: Option<Box<str>>,
    /// `protocol`.
    pub protocol: Protocol,
}

/// `protocol` of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// `dnsPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsPolicy {
    /// The cluster's DNS, unless the pod uses the host's network.
    ClusterFirst,
    /// The cluster's DNS, also on the host's network.
    ClusterFirstWithHostNet,
    /// The node's resolv.conf.
    Default,
    /// Only `dnsConfig`.
    None,
}

/// `dnsConfig`; appended to what the policy gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsConfig {
    /// `nameservers`.
    pub nameservers: Vec<Box<str>>,
    /// `searches`.
    pub searches: Vec<Box<str>>,
    /// `options`: name and value.
    pub options: Vec<(Box<str>, Option<Box<str>>)>,
}

/// One entry of `hostAliases`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAlias {
    /// `ip`.
    pub ip: Box<str>,
    /// `hostnames`.
    pub hostnames: Vec<Box<str>>,
}
