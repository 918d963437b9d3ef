//! Creates the veth pair of a pod, and checks it.
//!
//! A pod has a /32 or /128 address: it reaches everything, also other pods, by the gateway. MAC
//! addresses derive from the IP addresses, and both sides have permanent neighbour entries: no ARP
//! is needed, and a thousand pods do not overflow the kernel's neighbour table (`gc_thresh3`, 1024
//! by default).

use std::{
    net::IpAddr,
    os::fd::{AsFd, OwnedFd},
};

use rubelet_host::{
    netlink::{Address, Changes, NetlinkError, Route, RouteSocket, Veth},
    netns,
    nft::Family,
};

use crate::{
    NetworkDamage, NetworkError, NetworkFailure,
    attachment::{Lease, PodRef},
};

use super::{
    harden,
    names::{inside_mac, outside_mac},
    setup::{ReadyBridge, cannot, unknown_kind},
    sysctl::{Interfaces, SysctlError},
};

/// The name of the interface inside of a pod.
pub(super) const INSIDE: &str = "eth0";

/// `EXFULL`: a bridge takes 1023 ports.
const BRIDGE_IS_FULL: i32 = 54;

/// Why a pod could not be connected.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// The bridge is gone.
    NoBridge,
    /// Anything else.
    Failed(NetworkError),
}

impl From<NetlinkError> for ConnectError {
    fn from(error: NetlinkError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<NetworkFailure> for ConnectError {
    fn from(failure: NetworkFailure) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<netns::NetnsError> for ConnectError {
    fn from(error: netns::NetnsError) -> Self {
        Self::Failed(error.into())
    }
}

/// The route from the host to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodRoute {
    /// As a port of the bridge.
    Bridge,
    /// By a route to its veth, because the bridge is full.
    Direct,
}

/// Connects a pod.
pub(super) fn connect(
    ready: &ReadyBridge,
    lease: &Lease,
    pod: &PodRef,
    netns: &OwnedFd,
) -> Result<PodRoute, ConnectError> {
    let mut socket = RouteSocket::open()?;
    let mut master = Some(ready.index);
    let mut cleaned = false;
    while let Err(error) = make(&mut socket, ready, lease, pod, netns, master) {
        if error.errno() == Some(BRIDGE_IS_FULL) && master.is_some() {
            // This pod gets a route of its own instead of a port.
            master = None;
        } else if error.is_exists() && !cleaned {
            // Left by an interrupted attempt.
            remove_now(&mut socket, lease)?;
            cleaned = true;
        } else if socket
            .link(&ready.name)?
            .is_none_or(|bridge| bridge.index != ready.index)
        {
            return Err(ConnectError::NoBridge);
        } else {
            return Err(unknown_kind(error, "veth").into());
        }
    }
    if let Err(error) = outside(&mut socket, ready, lease, pod, master) {
        let there = socket.link(&ready.name)?;
        return match there.filter(|bridge| bridge.index == ready.index) {
            Some(_) => Err(error),
            None => Err(ConnectError::NoBridge),
        };
    }
    let (near, reached) = match master {
        Some(_) => (ready.mac, PodRoute::Bridge),
        None => (by_route(&mut socket, lease)?, PodRoute::Direct),
    };
    inside(lease, netns, near, ready.ipv6)?;
    // The kernel activates an interface that gets its carrier in the background, at times a second
    // later, and until then loses what is sent by it: the first packets to the pod. When it is asked
    // about the interface, it does so at once (Linux 6.8, `linkwatch_sync_dev`).
    socket.link(&lease.host_interface)?;
    Ok(reached)
}

/// Creates the veth pair; both ends are down.
fn make(
    socket: &mut RouteSocket,
    ready: &ReadyBridge,
    lease: &Lease,
    pod: &PodRef,
    netns: &OwnedFd,
    master: Option<u32>,
) -> Result<(), NetlinkError> {
    let primary = lease.addresses[0];
    let name = lease.host_interface.as_str();
    let mut changes = Changes::default();
    changes.add_veth(Veth {
        name,
        mac: outside_mac(primary),
        master,
        peer: INSIDE,
        peer_mac: inside_mac(primary),
        peer_netns: netns.as_fd(),
        mtu: ready.mtu,
    });
    socket.apply(changes, || {
        format!("create the veth pair {name} for {INSIDE} of pod {pod}")
    })
}

/// Configures the host end and sets it up.
fn outside(
    socket: &mut RouteSocket,
    ready: &ReadyBridge,
    lease: &Lease,
    pod: &PodRef,
    master: Option<u32>,
) -> Result<(), ConnectError> {
    let primary = lease.addresses[0];
    let name = lease.host_interface.as_str();
    // While it is down: once it is up, the kernel handles packets of the pod.
    harden::interface(&Interfaces::open(), name).map_err(exposed)?;
    let mut changes = Changes::default();
    if let Some(bridge) = master {
        changes.set_port(name, ready.port());
        if let Some(link) = socket.link(name)? {
            changes.add_station(link.index, inside_mac(primary));
        }
        for &address in &lease.addresses {
            changes.add_neighbour(bridge, address, inside_mac(primary));
        }
    }
    if ready.ipv6 {
        changes.no_link_local(name);
    }
    changes.describe(name, &pod.to_string()).set_up(name);
    Ok(socket.apply(changes, || {
        format!("set up the interface {name} of pod {pod}")
    })?)
}

fn exposed(error: SysctlError) -> NetworkFailure {
    cannot("disable router advertisements and redirects", error)
}

/// Adds a route to a pod outside of the full bridge. Returns the MAC address of the host end.
fn by_route(socket: &mut RouteSocket, lease: &Lease) -> Result<[u8; 6], ConnectError> {
    let name = lease.host_interface.as_str();
    let link = socket
        .link(name)?
        .ok_or_else(|| NetworkFailure::InterfaceGone(name.to_owned()))?;
    let mut changes = Changes::default();
    for (&address, range) in lease.addresses.iter().zip(&lease.ranges) {
        changes
            .add_neighbour(link.index, address, inside_mac(lease.addresses[0]))
            .add_route(Route {
                destination: address,
                prefix: width(address),
                gateway: None,
                link: link.index,
                source: Some(range.gateway()),
            });
    }
    socket.apply(changes, || format!("add a route by {name}"))?;
    Ok(outside_mac(lease.addresses[0]))
}

fn inside(lease: &Lease, netns: &OwnedFd, near: [u8; 6], ipv6: bool) -> Result<(), ConnectError> {
    let with_ipv6 = lease.addresses.iter().any(IpAddr::is_ipv6);
    // A netlink socket belongs to the namespace in which it is opened: only that needs the switch.
    let mut socket = netns::within(netns, || {
        let interfaces = Interfaces::open();
        // Redirects are ignored: the route by the gateway is the only one. Set before the interface
        // is up.
        for name in ["all", INSIDE] {
            let set = |family, key| interfaces.set(family, name, key, "0");
            let _ = set(Family::V4, "accept_redirects");
            if with_ipv6 {
                let _ = set(Family::V6, "accept_redirects");
                let _ = set(Family::V6, "disable_ipv6");
            }
        }
        harden::interface(&interfaces, INSIDE).map_err(exposed)?;
        Ok::<_, ConnectError>(RouteSocket::open()?)
    })??;
    let link = socket
        .link(INSIDE)?
        .ok_or(NetworkFailure::PodInterfaceGone(INSIDE))?
        .index;
    let mut changes = Changes::default();
    if ipv6 && !with_ipv6 {
        changes.no_link_local(INSIDE);
    }
    // Before the routes: the kernel accepts none by an interface that is down.
    changes.set_up(INSIDE);
    for (&address, range) in lease.addresses.iter().zip(&lease.ranges) {
        let gateway = range.gateway();
        changes
            .add_address(own(link, address))
            .add_route(Route {
                destination: gateway,
                prefix: width(gateway),
                gateway: None,
                link,
                source: None,
            })
            .add_route(Route::default_by(gateway, link))
            .add_neighbour(link, gateway, near);
    }
    Ok(socket.apply(changes, || format!("configure the addresses of {INSIDE}"))?)
}

fn own(link: u32, address: IpAddr) -> Address {
    Address {
        link,
        address,
        prefix: width(address),
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Removes a pod's interface synchronously.
pub(super) fn remove_now(socket: &mut RouteSocket, lease: &Lease) -> Result<(), NetlinkError> {
    let mut changes = Changes::default();
    changes.delete_link(&lease.host_interface);
    match socket.apply(changes, || format!("remove {}", lease.host_interface)) {
        Err(error) if !error.is_missing() => Err(error),
        _ => Ok(()),
    }
}

/// Deletes a pod's neighbour entry, and moves its interface to the group for removal.
pub(super) fn mark_for_deletion(
    lease: &Lease,
    bridge: &str,
    group: u32,
) -> Result<(), NetlinkError> {
    let mut socket = RouteSocket::open()?;
    let mut changes = Changes::default();
    changes.set_group(&lease.host_interface, group);
    match socket.apply(changes, || format!("remove {}", lease.host_interface)) {
        Err(error) if !error.is_missing() => return Err(error),
        _ => {}
    }
    // Its neighbour entries went with the bridge.
    let Some(bridge) = socket.link(bridge)? else {
        return Ok(());
    };
    let mut changes = Changes::default();
    for &address in &lease.addresses {
        changes.delete_neighbour(bridge.index, address);
    }
    match socket.apply(changes, || "delete a pod's neighbour entry".to_owned()) {
        Err(error) if !error.is_missing() => Err(error),
        _ => Ok(()),
    }
}

/// Checks a pod's interfaces, addresses and routes.
pub(super) fn missing(
    ready: &ReadyBridge,
    lease: &Lease,
    netns: &OwnedFd,
) -> Result<(), NetworkError> {
    let name = &lease.host_interface;
    let mut socket = RouteSocket::open()?;
    let Some(link) = socket.link(name)? else {
        return Err(NetworkDamage::InterfaceMissing(name.clone()).into());
    };
    if !link.up {
        return Err(NetworkDamage::InterfaceDown(name.clone()).into());
    }
    // Without a master it was added while the bridge was full, and has a route.
    if link.master.is_some_and(|master| master != ready.index) {
        return Err(NetworkDamage::NotOnBridge {
            interface: name.clone(),
            bridge: ready.name.clone(),
        }
        .into());
    }
    let mut socket = netns::within(netns, RouteSocket::open)??;
    let Some(link) = socket.link(INSIDE)? else {
        return Err(NetworkDamage::PodInterfaceMissing(INSIDE).into());
    };
    if !link.up {
        return Err(NetworkDamage::PodInterfaceDown(INSIDE).into());
    }
    let addresses = socket.addresses()?;
    let routes = socket.routes()?;
    for (&address, range) in lease.addresses.iter().zip(&lease.ranges) {
        if !addresses.contains(&own(link.index, address)) {
            return Err(NetworkDamage::AddressMissing(address).into());
        }
        let gateway = Some(range.gateway());
        if !routes
            .iter()
            .any(|route| route.prefix == 0 && route.gateway == gateway)
        {
            return Err(NetworkDamage::DefaultRouteMissing(range.gateway()).into());
        }
    }
    Ok(())
}
