//! The bridge itself, and the host's settings that pods need.

use std::{collections::BTreeMap, net::IpAddr};

use rubelet_host::netlink::{
    Address, Bridge, BridgePort, Changes, Link, NetlinkError, Route, RouteSocket,
};

use crate::{Cidr, NetworkSettings, attachment::Lease};

use super::{
    harden,
    names::{Names, inside_mac},
    sysctl::{self, Interfaces},
};

/// The largest packet where there is no default route to learn it from.
const USUAL_MTU: u32 = 1500;

/// `EOPNOTSUPP`
const NOT_SUPPORTED: i32 = 95;

/// A bridge that pods can be put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) mac: [u8; 6],
    pub(super) mtu: u32,
    /// Whether this kernel knows IPv6 at all.
    pub(super) ipv6: bool,
    /// Whether pods are kept from one another.
    pub(super) isolated: bool,
}

impl Ready {
    /// How the bridge treats the port of a pod. Where pods are is told to the bridge, never learned:
    /// what one sends moves no other pod's frames.
    pub(super) fn port(&self) -> BridgePort {
        BridgePort {
            hairpin: true,
            learning: false,
            isolated: self.isolated,
        }
    }
}

/// What the host has.
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

/// Makes the bridge or takes the one that is there, and gives it its addresses.
pub(super) fn bridge(
    socket: &mut RouteSocket,
    host: &HostState,
    names: &Names,
    ranges: &[Cidr],
    settings: &NetworkSettings,
) -> Result<Ready, String> {
    let name = names.bridge.as_str();
    let text = |error: NetlinkError| rubelet_base::ErrorChain(&error).to_string();
    let first = ranges.first().ok_or("there is no range of pod addresses")?;
    let mac = inside_mac(first.gateway());
    let mtu = settings.mtu.unwrap_or_else(|| host.mtu());
    if host.named(name).is_none() {
        let mut changes = Changes::default();
        changes.add_bridge(Bridge { name, mac, mtu });
        socket
            .apply(changes, || format!("make the bridge {name}"))
            .map_err(|error| unknown_kind(&error, "bridge"))?;
    }
    let link = socket
        .link(name)
        .map_err(text)?
        .ok_or_else(|| format!("the bridge {name} vanished"))?;
    if link.kind != "bridge" {
        return Err(format!(
            "the interface {name} is not a bridge: give the pods' bridge another name"
        ));
    }
    harden::bridge(&Interfaces::open(), name)
        .map_err(|why| format!("pods could give this host routes and addresses: {why}"))?;
    if ranges.iter().any(|range| !range.is_ipv4()) {
        sysctl::set(&format!("ipv6/conf/{name}/disable_ipv6"), "0")
            .map_err(|why| format!("the bridge {name} cannot have IPv6 addresses: {why}"))?;
    }
    // Pods know the bridge by the address it had when they came.
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
    socket
        .apply(changes, || format!("set the bridge {name} up"))
        .map_err(text)?;
    let mut stale = Changes::default();
    for address in socket.addresses().map_err(text)? {
        let wanted = ranges
            .iter()
            .any(|range| gateway(link.index, *range) == address);
        let link_local = matches!(address.address, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if address.link == link.index && !wanted && !link_local {
            stale.delete_address(address);
        }
    }
    // An address too many does no harm that would be worth a refusal.
    let _ = socket.apply(stale, || format!("remove old addresses of {name}"));
    Ok(Ready {
        name: name.to_owned(),
        index: link.index,
        mac,
        mtu,
        ipv6: sysctl::has_ipv6(),
        isolated: settings.isolate_pods,
    })
}

fn gateway(link: u32, range: Cidr) -> Address {
    Address {
        link,
        address: range.gateway(),
        prefix: range.prefix(),
    }
}

/// An error in words, with what to do where the kernel doesn't know a kind of interface.
pub(super) fn unknown_kind(error: &NetlinkError, module: &str) -> String {
    let text = rubelet_base::ErrorChain(error).to_string();
    if error.errno() == Some(NOT_SUPPORTED) {
        format!("{text}: the kernel lacks its module {module}")
    } else {
        text
    }
}

/// Puts the interfaces of pods back onto a bridge that was made anew.
pub(super) fn reattach(
    socket: &mut RouteSocket,
    host: &HostState,
    ready: &Ready,
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
        format!("put the pods' interfaces back onto {}", ready.name)
    })
}

/// Gives the interfaces of pods that run the settings of those that start now: an agent of an older
/// version, or with another configuration, may have made them.
pub(super) fn refit(
    socket: &mut RouteSocket,
    links: &[Link],
    ready: &Ready,
    leases: &[Lease],
) -> Result<(), String> {
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
        harden::interface(&interfaces, name)?;
        if link.master == Some(ready.index) && link.port != Some(ready.port()) {
            changes.set_port(name, ready.port());
        }
    }
    let what = || "set the ports of pods up".to_owned();
    match socket.apply(changes, what) {
        Err(error) if !error.is_missing() => Err(rubelet_base::ErrorChain(&error).to_string()),
        _ => Ok(()),
    }
}

/// Lets the host pass packets on. What can't be set is told in words.
pub(super) fn forwarding(names: &Names, ranges: &[Cidr]) -> Vec<String> {
    let bridge = &names.bridge;
    let mut trouble = Vec::new();
    if ranges.iter().any(Cidr::is_ipv4) {
        if let Err(why) = sysctl::set("ipv4/ip_forward", "1") {
            trouble.push(format!("pods reach nothing but this host: {why}"));
        }
        let _ = sysctl::set(&format!("ipv4/conf/{bridge}/send_redirects"), "0");
    }
    if ranges.iter().any(|range| !range.is_ipv4()) {
        if sysctl::get("ipv6/conf/all/forwarding").as_deref() != Some("1") {
            // A host that forwards takes no routes from routers, unless it is told to. Pods are none.
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
        if let Err(why) = sysctl::set("ipv6/conf/all/forwarding", "1") {
            trouble.push(format!("pods reach nothing but this host by IPv6: {why}"));
        }
    }
    trouble
}
