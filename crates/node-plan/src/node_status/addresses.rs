//! The node's addresses.
//!
//! Source of the rule: `NodeAddress` in `pkg/kubelet/nodestatus/setters.go` of Kubernetes 1.36.

use std::net::IpAddr;

use super::{
    NodeSettings,
    object::{NodeAddress, Texts},
};

const INTERNAL_IP: &str = "InternalIP";
const HOSTNAME: &str = "Hostname";
/// Passes the addresses of `--node-ip` to the cloud controller manager.
const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// Addresses of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostAddresses {
    /// Addresses of `--node-ip` that no interface has, in order.
    pub absent: Vec<IpAddr>,
    /// Addresses to which the node's name resolves and that an interface has.
    pub resolved: Vec<IpAddr>,
    /// Source addresses of the default routes, one for each family.
    pub outward: Vec<IpAddr>,
}

/// The node's addresses can't be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// `--node-ip` is not a valid node address.
    #[error("failed to validate nodeIP: {0}")]
    InvalidNodeIp(&'static str),
    /// No interface has the address of `--node-ip`.
    #[error(
        "failed to validate nodeIP: node IP: \"{0}\" not found in the host's network interfaces"
    )]
    NotOnHost(IpAddr),
    /// The machine has no usable address.
    #[error("can't get ip address of node {0}; set the address with --node-ip")]
    NoAddress(Box<str>),
}

/// True if the node's name must be resolved.
#[must_use]
pub fn needs_lookup(settings: &NodeSettings) -> bool {
    let given = settings.node_ips.iter().any(|ip| !ip.is_unspecified());
    !given && settings.name.parse::<IpAddr>().is_err()
}

/// Chooses the addresses, by preference: `--node-ip`; the name, if it is an address; the addresses
/// to which the name resolves; the source address of the default route.
///
/// # Errors
/// The machine does not have an address of `--node-ip`, or no address was found.
pub fn choose(
    settings: &NodeSettings,
    found: &HostAddresses,
) -> Result<Vec<NodeAddress>, AddressError> {
    let given: Vec<IpAddr> = settings
        .node_ips
        .iter()
        .copied()
        .filter(|ip| !ip.is_unspecified())
        .collect();
    for ip in &given {
        if let Some(why) = unfit(*ip) {
            return Err(AddressError::InvalidNodeIp(why));
        }
        if found.absent.contains(ip) {
            return Err(AddressError::NotOnHost(*ip));
        }
    }
    let first = settings.node_ips.first();
    let prefers_v4 = first.is_none_or(IpAddr::is_ipv4);
    let internal = match given.as_slice() {
        [] => vec![automatic(settings, found, prefers_v4)?],
        given => given.to_vec(),
    };
    let internal = internal
        .into_iter()
        .map(|ip| address(INTERNAL_IP, &ip.to_string()));
    Ok(internal
        .chain([address(HOSTNAME, &settings.name)])
        .collect())
}

fn automatic(
    settings: &NodeSettings,
    found: &HostAddresses,
    prefers_v4: bool,
) -> Result<IpAddr, AddressError> {
    if let Ok(ip) = settings.name.parse() {
        return Ok(ip);
    }
    let preferred = |list: &[IpAddr]| {
        let fitting = list.iter().find(|ip| ip.is_ipv4() == prefers_v4);
        fitting.or(list.first()).copied()
    };
    let resolved: Vec<IpAddr> = found
        .resolved
        .iter()
        .copied()
        .filter(|ip| unfit(*ip).is_none())
        .collect();
    preferred(&resolved)
        .or_else(|| preferred(&found.outward))
        .ok_or_else(|| AddressError::NoAddress(settings.name.clone()))
}

fn unfit(ip: IpAddr) -> Option<&'static str> {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if ip.is_loopback() {
        Some("nodeIP can't be loopback address")
    } else if ip.is_multicast() {
        Some("nodeIP can't be a multicast address")
    } else if link_local {
        Some("nodeIP can't be a link-local unicast address")
    } else if ip.is_unspecified() {
        Some("nodeIP can't be an all zeros address")
    } else {
        None
    }
}

fn address(kind: &str, address: &str) -> NodeAddress {
    NodeAddress {
        kind: kind.into(),
        address: address.into(),
    }
}

/// Sets addresses and the annotation for the cloud controller manager. With an external cloud
/// provider its addresses are kept, and without `--node-ip` only the host name is reported until it
/// has set them.
pub(super) fn set(
    settings: &NodeSettings,
    chosen: &Result<Vec<NodeAddress>, AddressError>,
    annotations: &mut Texts,
    addresses: &mut Vec<NodeAddress>,
) -> Result<(), AddressError> {
    let chosen = chosen.as_ref().map_err(AddressError::clone);
    let first = settings.node_ips.first().copied();
    if settings.external_cloud && first.is_some_and(|ip| !ip.is_unspecified()) {
        let given: Vec<String> = settings
            .node_ips
            .iter()
            .filter(|ip| !ip.is_unspecified())
            .map(IpAddr::to_string)
            .collect();
        annotations.insert(PROVIDED_IP.into(), given.join(",").into());
    } else {
        annotations.remove(PROVIDED_IP);
    }
    match (settings.external_cloud, first) {
        (true, _) if !addresses.is_empty() => {}
        (true, None) => *addresses = vec![address(HOSTNAME, &settings.name)],
        _ => addresses.clone_from(chosen?),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn told(name: &str, node_ips: &[&str], absent: &[&str], resolved: &[&str]) -> String {
        let settings = NodeSettings {
            node_ips: ips(node_ips),
            ..NodeSettings::new(name)
        };
        let found = HostAddresses {
            absent: ips(absent),
            resolved: ips(resolved),
            outward: ips(&["10.0.0.1", "fd00::1"]),
        };
        match choose(&settings, &found) {
            Err(error) => error.to_string(),
            Ok(list) => list
                .iter()
                .map(|one| format!("{}={}", one.kind, one.address))
                .collect::<Vec<_>>()
                .join(" "),
        }
    }

    #[test]
    fn the_addresses_come_from_the_flag_the_name_or_the_default_route() {
        for (name, node_ips, absent, resolved, expected) in [
            (
                "n",
                &[][..],
                &[][..],
                &[][..],
                "InternalIP=10.0.0.1 Hostname=n",
            ),
            ("n", &["::"], &[], &[], "InternalIP=fd00::1 Hostname=n"),
            (
                "n",
                &[],
                &[],
                &["10.0.0.7"],
                "InternalIP=10.0.0.7 Hostname=n",
            ),
            (
                "n",
                &[],
                &[],
                &["127.0.1.1", "fd00::7", "10.0.0.8"],
                "InternalIP=10.0.0.8 Hostname=n",
            ),
            (
                "n",
                &["10.0.0.2"],
                &[],
                &["10.0.0.7"],
                "InternalIP=10.0.0.2 Hostname=n",
            ),
            (
                "n",
                &["fd00::2", "10.0.0.2"],
                &[],
                &[],
                "InternalIP=fd00::2 InternalIP=10.0.0.2 Hostname=n",
            ),
            (
                "n",
                &["10.0.0.9"],
                &["10.0.0.9"],
                &[],
                "failed to validate nodeIP: node IP: \"10.0.0.9\" not found in the host's network \
                 interfaces",
            ),
            (
                "n",
                &["127.0.0.1"],
                &[],
                &[],
                "failed to validate nodeIP: nodeIP can't be loopback address",
            ),
            (
                "10.1.1.1",
                &[],
                &[],
                &[],
                "InternalIP=10.1.1.1 Hostname=10.1.1.1",
            ),
        ] {
            assert_eq!(told(name, node_ips, absent, resolved), expected);
        }
    }

    #[test]
    fn the_name_is_resolved_only_where_that_decides() {
        let with = |name: &str, node_ips: &[&str]| {
            needs_lookup(&NodeSettings {
                node_ips: ips(node_ips),
                ..NodeSettings::new(name)
            })
        };
        assert!(with("n", &[]) && with("n", &["0.0.0.0"]));
        assert!(!with("n", &["10.0.0.1"]) && !with("10.0.0.1", &[]));
    }

    #[test]
    fn a_cloud_has_the_last_word() {
        let cloud = |node_ips: &[&str], shown: &[NodeAddress]| {
            let settings = NodeSettings {
                node_ips: ips(node_ips),
                external_cloud: true,
                ..NodeSettings::new("n")
            };
            let chosen = choose(&settings, &HostAddresses::default());
            let mut annotations = Texts::from([(PROVIDED_IP.into(), "old".into())]);
            let mut addresses = shown.to_vec();
            let result = set(&settings, &chosen, &mut annotations, &mut addresses);
            let annotation = annotations.remove(PROVIDED_IP);
            (result.is_ok(), addresses, annotation)
        };
        let name = address(HOSTNAME, "n");
        let external = address("ExternalIP", "198.51.100.1");
        let own = address(INTERNAL_IP, "10.0.0.1");
        assert_eq!(cloud(&[], &[]), (true, vec![name.clone()], None));
        assert_eq!(
            cloud(&["10.0.0.1"], std::slice::from_ref(&external)),
            (true, vec![external], Some("10.0.0.1".into()))
        );
        assert_eq!(
            cloud(&["10.0.0.1"], &[]),
            (true, vec![own, name], Some("10.0.0.1".into()))
        );
    }
}
