//! Puts an interface into a pod, and looks whether it is there.
//!
//! A pod has its address alone on its interface: whatever isn't the pod itself, other pods too, is
//! reached by the gateway. The hardware addresses follow from the IP addresses and are told to both
//! sides for good; nobody has to ask for them, and a thousand pods don't overflow the kernel's list of
//! learned neighbours.

use std::{
    net::IpAddr,
    os::fd::{AsFd, OwnedFd},
};

use rubelet_base::ErrorChain;
use rubelet_host::{
    netlink::{Address, Changes, NetlinkError, Route, RouteSocket, Veth},
    netns,
};

use crate::{
    NetworkError,
    attachment::{Lease, PodRef},
};

use super::{
    harden,
    names::{inside_mac, outside_mac},
    setup::{Ready, unknown_kind},
    sysctl::{Interfaces, Protocol},
};

/// The name of a pod's interface inside.
pub(super) const INSIDE: &str = "eth0";

/// `EXFULL`: a bridge takes 1023 ports.
const BRIDGE_IS_FULL: i32 = 54;

/// Why a pod could not be connected.
#[derive(Debug)]
pub(super) enum Unplumbed {
    /// The bridge is gone.
    NoBridge,
    /// Anything else.
    Failed(NetworkError),
}

impl From<NetlinkError> for Unplumbed {
    fn from(error: NetlinkError) -> Self {
        Self::Failed(failed(&error))
    }
}

impl From<netns::NetnsError> for Unplumbed {
    fn from(error: netns::NetnsError) -> Self {
        Self::Failed(failed(&error))
    }
}

pub(super) fn failed(error: &(dyn std::error::Error + 'static)) -> NetworkError {
    NetworkError::Failed(ErrorChain(error).to_string())
}

/// How a pod is reached from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Through the bridge.
    ByBridge,
    /// By a route of its own, as the bridge is full.
    ByRoute,
}

/// Connects a pod.
pub(super) fn connect(
    ready: &Ready,
    lease: &Lease,
    pod: &PodRef,
    netns: &OwnedFd,
) -> Result<Reached, Unplumbed> {
    let mut socket = RouteSocket::open()?;
    let mut master = Some(ready.index);
    let mut cleaned = false;
    while let Err(error) = make(&mut socket, ready, lease, pod, netns, master) {
        if error.errno() == Some(BRIDGE_IS_FULL) && master.is_some() {
            master = None;
        } else if error.is_exists() && !cleaned {
            // What is left of an attempt that was cut short.
            remove_now(&mut socket, lease)?;
            cleaned = true;
        } else if socket
            .link(&ready.name)?
            .is_none_or(|bridge| bridge.index != ready.index)
        {
            return Err(Unplumbed::NoBridge);
        } else {
            let why = unknown_kind(&error, "veth");
            return Err(Unplumbed::Failed(NetworkError::Failed(why)));
        }
    }
    if let Err(error) = outside(&mut socket, ready, lease, pod, master) {
        let there = socket.link(&ready.name)?;
        return match there.filter(|bridge| bridge.index == ready.index) {
            Some(_) => Err(error),
            None => Err(Unplumbed::NoBridge),
        };
    }
    let (near, reached) = match master {
        Some(_) => (ready.mac, Reached::ByBridge),
        None => (by_route(&mut socket, lease)?, Reached::ByRoute),
    };
    inside(lease, netns, near, ready.ipv6)?;
    Ok(reached)
}

/// Makes the pair of interfaces, both switched off.
fn make(
    socket: &mut RouteSocket,
    ready: &Ready,
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
        format!("make the interface {INSIDE} of pod {pod} with its host's end {name}")
    })
}

/// Switches the host's end on.
fn outside(
    socket: &mut RouteSocket,
    ready: &Ready,
    lease: &Lease,
    pod: &PodRef,
    master: Option<u32>,
) -> Result<(), Unplumbed> {
    let primary = lease.addresses[0];
    let name = lease.host_interface.as_str();
    harden::interface(&Interfaces::open(), name).map_err(|why| exposed(&why))?;
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
        format!("switch on the interface {name} of pod {pod}")
    })?)
}

fn exposed(why: &str) -> Unplumbed {
    Unplumbed::Failed(NetworkError::Failed(format!(
        "cannot keep router advertisements and redirects out: {why}"
    )))
}

/// Leads to a pod without the bridge, which is full. Tells the hardware address of this end.
fn by_route(socket: &mut RouteSocket, lease: &Lease) -> Result<[u8; 6], Unplumbed> {
    let name = lease.host_interface.as_str();
    let link = socket
        .link(name)?
        .ok_or_else(|| Unplumbed::Failed(NetworkError::Failed(format!("{name} is gone"))))?;
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
    socket.apply(changes, || format!("make a route by {name}"))?;
    Ok(outside_mac(lease.addresses[0]))
}

fn inside(lease: &Lease, netns: &OwnedFd, near: [u8; 6], ipv6: bool) -> Result<(), Unplumbed> {
    let with_ipv6 = lease.addresses.iter().any(IpAddr::is_ipv6);
    let mut socket = netns::within(netns, || {
        let interfaces = Interfaces::open();
        // The way by the gateway is the only one, whatever the gateway or a neighbour thinks of others.
        for name in ["all", INSIDE] {
            let set = |protocol, key| interfaces.set(protocol, name, key, "0");
            let _ = set(Protocol::V4, "accept_redirects");
            if with_ipv6 {
                let _ = set(Protocol::V6, "accept_redirects");
                let _ = set(Protocol::V6, "disable_ipv6");
            }
        }
        harden::interface(&interfaces, INSIDE).map_err(|why| exposed(&why))?;
        Ok::<_, Unplumbed>(RouteSocket::open()?)
    })??;
    let link = socket
        .link(INSIDE)?
        .ok_or_else(|| {
            Unplumbed::Failed(NetworkError::Failed(format!(
                "the interface {INSIDE} is gone from the pod's network namespace"
            )))
        })?
        .index;
    let mut changes = Changes::default();
    if ipv6 && !with_ipv6 {
        changes.no_link_local(INSIDE);
    }
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
    Ok(socket.apply(changes, || format!("give {INSIDE} its addresses"))?)
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

/// Removes a pod's interface and waits until it is gone.
pub(super) fn remove_now(socket: &mut RouteSocket, lease: &Lease) -> Result<(), NetlinkError> {
    let mut changes = Changes::default();
    changes.delete_link(&lease.host_interface);
    match socket.apply(changes, || format!("remove {}", lease.host_interface)) {
        Err(error) if !error.is_missing() => Err(error),
        _ => Ok(()),
    }
}

/// Forgets a pod's hardware address, and marks its interface as one that is to be removed.
pub(super) fn condemn(lease: &Lease, bridge: &str, group: u32) -> Result<(), NetlinkError> {
    let mut socket = RouteSocket::open()?;
    let mut changes = Changes::default();
    changes.set_group(&lease.host_interface, group);
    match socket.apply(changes, || format!("remove {}", lease.host_interface)) {
        Err(error) if !error.is_missing() => return Err(error),
        _ => {}
    }
    let Some(bridge) = socket.link(bridge)? else {
        return Ok(());
    };
    let mut changes = Changes::default();
    for &address in &lease.addresses {
        changes.delete_neighbour(bridge.index, address);
    }
    match socket.apply(changes, || "forget a pod's hardware address".to_owned()) {
        Err(error) if !error.is_missing() => Err(error),
        _ => Ok(()),
    }
}

/// What is missing of a pod's connection, in words.
pub(super) fn missing(ready: &Ready, lease: &Lease, netns: &OwnedFd) -> Result<(), NetworkError> {
    let broken = |text: String| Err(NetworkError::Broken(text));
    let name = &lease.host_interface;
    let mut socket = RouteSocket::open().map_err(|error| failed(&error))?;
    let Some(link) = socket.link(name).map_err(|error| failed(&error))? else {
        return broken(format!("the interface {name} is gone from the host"));
    };
    if !link.up {
        return broken(format!("the interface {name} is switched off"));
    }
    if link.master.is_some_and(|master| master != ready.index) {
        return broken(format!(
            "the interface {name} is not on the bridge {}",
            ready.name
        ));
    }
    let mut socket = netns::within(netns, RouteSocket::open)
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&error))?;
    let Some(link) = socket.link(INSIDE).map_err(|error| failed(&error))? else {
        return broken(format!("the interface {INSIDE} is gone from the pod"));
    };
    if !link.up {
        return broken(format!("the interface {INSIDE} in the pod is switched off"));
    }
    let addresses = socket.addresses().map_err(|error| failed(&error))?;
    let routes = socket.routes().map_err(|error| failed(&error))?;
    for (&address, range) in lease.addresses.iter().zip(&lease.ranges) {
        if !addresses.contains(&own(link.index, address)) {
            return broken(format!("the address {address} is gone from the pod"));
        }
        let gateway = Some(range.gateway());
        if !routes
            .iter()
            .any(|route| route.prefix == 0 && route.gateway == gateway)
        {
            return broken(format!(
                "the default route by {} is gone from the pod",
                range.gateway()
            ));
        }
    }
    Ok(())
}
