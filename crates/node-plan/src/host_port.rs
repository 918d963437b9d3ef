//! Host ports of pods and their conflicts.

use std::{fmt, net::IpAddr};

use rubelet_api::network::{ContainerPort, Protocol};

/// A host port of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPort {
    number: u16,
    protocol: Protocol,
    /// `None`: every address.
    address: Option<IpAddr>,
}

impl HostPort {
    /// The host port of a container's port; `None` if it has none.
    #[must_use]
    pub fn of(port: &ContainerPort) -> Option<Self> {
        let address = port.host_ip.as_deref().and_then(|text| text.parse().ok());
        Some(Self {
            number: port.host_port.filter(|number| *number > 0)?,
            protocol: port.protocol,
            address: address.filter(|address: &IpAddr| !address.is_unspecified()),
        })
    }

    /// True if only one of the two can be in use. An unspecified address means all addresses, as in
    /// the scheduler, which supports that for IPv4 only.
    #[must_use]
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let addresses = match (self.address, other.address) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        addresses && (self.number, self.protocol) == (other.number, other.protocol)
    }
}

/// As `8080/TCP`.
impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        };
        write!(f, "{}/{protocol}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u16, protocol: Protocol, address: Option<&str>) -> HostPort {
        HostPort::of(&ContainerPort {
            name: None,
            container_port: 80,
            host_port: Some(number),
            host_ip: address.map(Into::into),
            protocol,
        })
        .unwrap()
    }

    #[test]
    fn ports_conflict_where_the_scheduler_says_so() {
        let tcp = |number, address| port(number, Protocol::Tcp, address);
        assert!(tcp(80, None).conflicts_with(&tcp(80, Some("127.0.0.1"))));
        assert!(tcp(80, Some("0.0.0.0")).conflicts_with(&tcp(80, Some("127.0.0.1"))));
        assert!(tcp(80, Some("")).conflicts_with(&tcp(80, Some("127.0.0.1"))));
        assert!(tcp(80, Some("::")).conflicts_with(&tcp(80, Some("::1"))));
        assert!(tcp(80, Some("127.0.0.1")).conflicts_with(&tcp(80, Some("127.0.0.1"))));
        assert!(!tcp(80, Some("127.0.0.2")).conflicts_with(&tcp(80, Some("127.0.0.1"))));
        assert!(!tcp(80, None).conflicts_with(&tcp(81, None)));
        assert!(!tcp(80, None).conflicts_with(&port(80, Protocol::Udp, None)));
        assert_eq!(
            port(80, Protocol::Udp, Some("127.0.0.1")).to_string(),
            "80/UDP"
        );
    }
}
