//! The bridge interface, and the host settings that pods need.

use std::{collections::BTreeMap, net::IpAddr};

use rubelet_base::ErrorChain;
use rubelet_host::netlink::{
    Address, Bridge, BridgePort, Changes, Link, NetlinkError, Route, RouteSocket,
};

use crate::{Cidr, NetworkError, NetworkFailure, NetworkSettings, attachment::Lease};

use super::{
    harden,
    names::{Names, inside_mac},
    sysctl::{self, Interfaces, SysctlError},
};

/// The MTU without a default route to take it from.
const USUAL_MTU: u32 = 1500;

/// `EOPNOTSUPP`
const NOT_SUPPORTED: i32 = 95;

/// A bridge that is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadyBridge {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) mac: [u8; 6],
    pub(super) mtu: u32,
    /// Whether this kernel supports IPv6.
    pub(super) ipv6: bool,
    /// Whether pods are isolated from each other.
    pub(super) isolated: bool,
}

impl ReadyBridge {
    /// Settings of a pod's bridge port. The bridge has static entries and learning is off, so that
    /// a pod can't attract frames of other pods.
    pub(super) fn port(&self) -> BridgePort {
        BridgePort {
            hairpin: true,
            learning: false,
            isolated: self.isolated,
        }
    }
}

/// The host's interfaces and routes.
#[derive(Debug)]
pub(super) struct HostState {
    pub(super) links: Vec<Link>,
    pub(super) routes: Vec<Route>,
}

impl HostState {
    pub(super) fn read(socket: &mut RouteSocket) -> Result<Self, NetlinkError> {
        Ok(Self {
            links: socket.links()?,
            routes: socket.routes()?,
        })
    }

    pub(super) fn named(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    fn mtu(&self) -> u32 {
        let default = self.routes.iter().find(|route| route.prefix == 0);
        default
            .and_then(|route| self.links.iter().find(|link| link.index == route.link))
            .map_or(USUAL_MTU, |link| link.mtu)
    }
}

/// Creates the bridge, or uses an existing one, and sets its addresses.
pub(super) fn bridge(
    socket: &mut RouteSocket,
    host: &HostState,
    names: &Names,
    ranges: &[Cidr],
    settings: &NetworkSettings,
) -> Result<ReadyBridge, NetworkError> {
    let name = names.bridge.as_str();
    let first = ranges.first().ok_or(NetworkFailure::NoRange)?;
    let mac = inside_mac(first.gateway());
    let mtu = settings.mtu.unwrap_or_else(|| host.mtu());
    if host.named(name).is_none() {
        let mut changes = Changes::default();
        changes.add_bridge(Bridge { name, mac, mtu });
        socket
            .apply(changes, || format!("create the bridge {name}"))
            .map_err(|error| unknown_kind(error, "bridge"))?;
    }
    let link = socket
        .link(name)?
        .ok_or_else(|| NetworkFailure::BridgeRemoved(name.to_owned()))?;
    if link.kind != "bridge" {
        return Err(NetworkFailure::NotABridge(name.to_owned()).into());
    }
    harden::bridge(&Interfaces::open(), name)
        .map_err(|error| cannot("keep router advertisements of pods from this host", error))?;
    if ranges.iter().any(|range| !range.is_ipv4()) {
        sysctl::set(&format!("ipv6/conf/{name}/disable_ipv6"), "0")
            .map_err(|error| cannot("enable IPv6 on the bridge", error))?;
    }
    // Running pods have permanent neighbour entries with the bridge's present MAC address.
    let mac = match <[u8; 6]>::try_from(link.mac.as_slice()) {
        Ok(found) if found[..2] == mac[..2] => found,
        _ => mac,
    };
    let mut changes = Changes::default();
    if link.mac != mac {
        changes.set_mac(name, mac);
    }
    if !link.up {
        changes.set_up(name);
    }
    for range in ranges {
        changes.add_address(gateway(link.index, *range));
    }
    socket.apply(changes, || format!("configure the bridge {name}"))?;
    // After the new addresses are there: running pods are never without a gateway.
    let mut stale = Changes::default();
    for address in socket.addresses()? {
        let wanted = ranges
            .iter()
            .any(|range| gateway(link.index, *range) == address);
        let link_local = matches!(address.address, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if address.link == link.index && !wanted && !link_local {
            stale.delete_address(address);
        }
    }
    // An old address that stays does no harm.
    let _ = socket.apply(stale, || format!("remove old addresses of {name}"));
    Ok(ReadyBridge {
        name: name.to_owned(),
        index: link.index,
        mac,
        mtu,
        ipv6: sysctl::has_ipv6(),
        isolated: settings.isolate_pods,
    })
}

pub(super) fn cannot(purpose: &'static str, error: SysctlError) -> NetworkFailure {
    NetworkFailure::KernelParameterFor { purpose, error }
}

fn gateway(link: u32, range: Cidr) -> Address {
    Address {
        link,
        address: range.gateway(),
        prefix: range.prefix(),
    }
}

/// The failure to create an interface, with the missing module if the kernel does not support its
/// type.
pub(super) fn unknown_kind(error: NetlinkError, module: &'static str) -> NetworkFailure {
    if error.errno() == Some(NOT_SUPPORTED) {
        NetworkFailure::NoModule { module, error }
    } else {
        NetworkFailure::Netlink(error)
    }
}

/// Reattaches the interfaces of pods to a recreated bridge.
pub(super) fn reattach(
    socket: &mut RouteSocket,
    host: &HostState,
    ready: &ReadyBridge,
    leases: &[Lease],
) -> Result<(), NetlinkError> {
    let mut changes = Changes::default();
    for lease in leases {
        let name = lease.host_interface.as_str();
        if let Some(link) = host.named(name).filter(|link| link.master.is_none()) {
            changes
                .set_master(name, ready.index)
                .set_port(name, ready.port())
                .add_station(link.index, inside_mac(lease.addresses[0]));
        }
        for &address in &lease.addresses {
            changes.add_neighbour(ready.index, address, inside_mac(lease.addresses[0]));
        }
    }
    socket.apply(changes, || {
        format!("reattach the pods' interfaces to {}", ready.name)
    })
}

/// Updates the interfaces of running pods, which an older version or one with another configuration
/// may have created, to the present settings.
pub(super) fn reapply_port_settings(
    socket: &mut RouteSocket,
    links: &[Link],
    ready: &ReadyBridge,
    leases: &[Lease],
) -> Result<(), NetworkError> {
    let mut changes = Changes::default();
    let interfaces = Interfaces::open();
    let links: BTreeMap<&str, &Link> = links
        .iter()
        .map(|link| (link.name.as_str(), link))
        .collect();
    for lease in leases {
        let name = lease.host_interface.as_str();
        let Some(link) = links.get(name) else {
            continue;
        };
        harden::interface(&interfaces, name).map_err(NetworkFailure::KernelParameter)?;
        if link.master == Some(ready.index) && link.port != Some(ready.port()) {
            changes.set_port(name, ready.port());
        }
    }
    let what = || "update the bridge ports of pods".to_owned();
    match socket.apply(changes, what) {
        Err(error) if !error.is_missing() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Enables IP forwarding. Returns messages about what can't be set.
pub(super) fn forwarding(names: &Names, ranges: &[Cidr]) -> Vec<String> {
    let mut trouble = Vec::new();
    if ranges.iter().any(Cidr::is_ipv4)
        && let Err(error) = sysctl::set("ipv4/ip_forward", "1")
    {
        trouble.push(format!("pods reach only this host: {}", ErrorChain(&error)));
    }
    if ranges.iter().any(|range| !range.is_ipv4()) {
        if sysctl::get("ipv6/conf/all/forwarding").as_deref() != Some("1") {
            // With forwarding on, Linux ignores router advertisements unless accept_ra is 2.
            // Interfaces of pods are left out.
            for name in sysctl::list("ipv6/conf") {
                let key = format!("ipv6/conf/{name}/accept_ra");
                if !["all", "default"].contains(&name.as_str())
                    && !names.leads_to_pods(&name)
                    && sysctl::get(&key).as_deref() == Some("1")
                {
                    let _ = sysctl::set(&key, "2");
                }
            }
        }
        if let Err(error) = sysctl::set("ipv6/conf/all/forwarding", "1") {
            trouble.push(format!(
                "pods reach only this host by IPv6: {}",
                ErrorChain(&error)
            ));
        }
    }
    trouble
}
