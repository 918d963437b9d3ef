//! The built-in network: a bridge with the first address of the pods' range, a veth pair for each
//! pod, and address translation by nftables. It needs no other program.

mod address_allocator;
mod firewall;
mod harden;
mod host_ports;
mod link_reaper;
mod localnet;
mod names;
mod pod_interface;
mod pool;
mod probe;
mod ranges;
mod recovered_lease;
mod rules;
mod senders;
mod setup;
mod state;
mod sysctl;
mod tables;

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use rubelet_host::{
    netlink::{Changes, Link, Neighbour, RouteSocket},
    netns, nft,
};

use crate::{
    Cidr, NetworkDamage, NetworkError, NetworkFailure, NetworkRefusal, NetworkRequest,
    NetworkResult, NetworkSettings, PortMapping, Protocol,
    attachment::{Attachment, AttachmentKind, Lease, PodRef},
    attachments::Attachments,
};

pub use probe::missing_sender_rules;
pub use sysctl::SysctlError;

use address_allocator::{AddressAllocator, LeaseError};
use link_reaper::{LinkReaper, PendingDelete};
use names::Names;
use pod_interface::{ConnectError, PodRoute};
use setup::{HostState, ReadyBridge};
use state::RangeState;
use tables::{BridgePods, Tables};

/// The built-in network. All functions block.
#[derive(Debug)]
pub(crate) struct BridgeNetwork {
    // Order of locks: `ready`, then `ranges` or `tables`, then `allocator`.
    names: Names,
    settings: Arc<NetworkSettings>,
    attachments: Arc<Attachments>,
    allocator: Arc<Mutex<AddressAllocator>>,
    link_reaper: Arc<LinkReaper>,
    /// The bridge, once it is set up. Locked during the setup.
    ready: Mutex<Option<ReadyBridge>>,
    ranges: Mutex<RangeState>,
    /// Locked while rules are changed.
    tables: Mutex<Tables>,
}

impl BridgeNetwork {
    /// The network with the recorded leases. The bridge is created when it is first needed.
    pub(crate) fn new(
        settings: Arc<NetworkSettings>,
        attachments: Arc<Attachments>,
    ) -> Result<Self, NetworkError> {
        let names = Names::new(&settings.bridge_name);
        let mut allocator = AddressAllocator::default();
        for attachment in attachments.all() {
            if let AttachmentKind::Bridge(lease) = &attachment.how {
                allocator.restore(&attachment.sandbox, &attachment.pod, lease);
            }
        }
        let allocator = Arc::new(Mutex::new(allocator));
        Ok(Self {
            link_reaper: Arc::new(LinkReaper::new(
                names.deletion_group,
                Arc::clone(&allocator),
            )),
            ranges: Mutex::new(RangeState::load(&settings.state_dir)?),
            tables: Mutex::new(Tables::new(names.clone(), Arc::clone(&settings))),
            names,
            settings,
            attachments,
            allocator,
            ready: Mutex::default(),
        })
    }

    /// Checks that pods can be added: creates the bridge, or checks that it still exists.
    pub(crate) fn status(&self) -> Result<(), NetworkError> {
        self.ready(true)?;
        self.ensure_tables();
        Ok(())
    }

    /// Recreates rules that other programs changed or removed. Does nothing while there is no
    /// bridge.
    pub(crate) fn ensure_tables(&self) {
        if self.ready.lock().is_some() {
            self.tables.lock().ensure(|| self.pods());
        }
    }

    fn pods(&self) -> BridgePods {
        let allocator = self.allocator.lock();
        BridgePods {
            ranges: allocator.ranges(),
            leases: allocator.leases(),
        }
    }

    /// Problems that do not keep pods from being added.
    pub(crate) fn warnings(&self) -> Vec<String> {
        if self.ready.lock().is_none() {
            return Vec::new();
        }
        self.tables.lock().warnings()
    }

    pub(crate) fn add(&self, request: &NetworkRequest) -> Result<NetworkResult, NetworkError> {
        let mut ready = self.ready(false)?;
        let netns = netns::open(&request.netns)?;
        let pod = PodRef::of(request);
        self.check_ports(&pod, &request.port_mappings)?;
        let renewed =
            self.allocator
                .lock()
                .renew(&request.sandbox, &pod, &request.port_mappings)?;
        let (lease, again) = match renewed {
            Some(lease) => (lease, true),
            None => (self.lease(request, &pod)?, false),
        };
        let attachment = Attachment {
            sandbox: request.sandbox.clone(),
            pod: pod.clone(),
            netns: request.netns.clone(),
            how: AttachmentKind::Bridge(lease.clone()),
        };
        let connect = |ready: &mut ReadyBridge| {
            // On disk before anything is made: after a crash, DEL finds it.
            self.attachments.save(&attachment)?;
            // Before the interface exists: the sender rules and host ports must be in force when it
            // comes up.
            self.tables.lock().add_pod(&pod, &lease, || self.pods())?;
            if again && pod_interface::missing(ready, &lease, &netns).is_ok() {
                return Ok(());
            }
            let reached = match pod_interface::connect(ready, &lease, &pod, &netns) {
                Err(ConnectError::NoBridge) => {
                    // Another program removed the bridge since it was looked at: it is made again,
                    // once.
                    *ready = self.ready(true)?;
                    pod_interface::connect(ready, &lease, &pod, &netns)
                }
                other => other,
            }
            .map_err(|error| match error {
                ConnectError::Failed(error) => error,
                ConnectError::NoBridge => NetworkFailure::BridgeGone(ready.name.clone()).into(),
            })?;
            if reached == PodRoute::Direct {
                self.tables.lock().allow_localnet(&lease.host_interface);
            }
            Ok(())
        };
        let added = connect(&mut ready);
        forget_connections(&lease.ports);
        if let Err(error) = added {
            // Anything that can't be undone stays recorded, and DEL of the pod retries it.
            let _ = self.del(&request.sandbox);
            return Err(error);
        }
        Ok(result(&lease, request))
    }

    fn lease(&self, request: &NetworkRequest, pod: &PodRef) -> Result<Lease, NetworkError> {
        let take = || {
            let name = self.names.host_interface(&request.sandbox);
            let mut allocator = self.allocator.lock();
            let lease = allocator.lease(&request.sandbox, pod, name, &request.port_mappings)?;
            Ok((lease, allocator.next()))
        };
        let taken = match take() {
            Err(LeaseError::Pending) => {
                // Addresses become free when the interfaces that had them are deleted.
                self.link_reaper.wait();
                take()
            }
            taken => taken,
        };
        match taken {
            Ok((lease, next)) => {
                self.ranges.lock().note(&next)?;
                Ok(lease)
            }
            Err(LeaseError::Failed(error)) => Err(error),
            Err(LeaseError::Pending) => Err(NetworkFailure::AddressesPending.into()),
        }
    }

    /// Rejects host ports that can't work.
    fn check_ports(&self, pod: &PodRef, ports: &[PortMapping]) -> Result<(), NetworkRefusal> {
        let ranges = self.allocator.lock().ranges();
        for port in ports {
            let Some(ip) = host_ports::named(port.host_ip) else {
                continue;
            };
            if ip == IpAddr::from(std::net::Ipv6Addr::LOCALHOST) {
                return Err(NetworkRefusal::HostPortOnLoopback {
                    pod: pod.to_string(),
                    port: port.host_port,
                });
            }
            if !ranges.iter().any(|range| range.is_ipv4() == ip.is_ipv4()) {
                return Err(NetworkRefusal::HostPortFamily {
                    pod: pod.to_string(),
                    port: port.host_port,
                    ip,
                });
            }
        }
        Ok(())
    }

    /// As [`Self::del`], for a pod without a record.
    pub(crate) fn forget(&self, sandbox: &str) -> Result<(), NetworkError> {
        let known = self.allocator.lock().get(sandbox).is_some();
        if known { self.del(sandbox) } else { Ok(()) }
    }

    /// Removes a pod from the network. An unknown pod is not on this bridge, and is no error.
    pub(crate) fn del(&self, sandbox: &str) -> Result<(), NetworkError> {
        let known = self.allocator.lock().get(sandbox);
        let Some(lease) = known else {
            return self.attachments.remove(sandbox);
        };
        pod_interface::mark_for_deletion(&lease, &self.names.bridge, self.names.deletion_group)?;
        {
            // One lock over the lease and its elements: a rebuild in between would see only one of
            // the two changes.
            let mut tables = self.tables.lock();
            self.allocator.lock().end(sandbox);
            tables.remove_pod(&lease, || self.pods());
        }
        forget_connections(&lease.ports);
        self.link_reaper.add(PendingDelete {
            interface: lease.host_interface,
            addresses: lease.addresses,
        });
        // Last: after a crash before this, the record is found, and DEL runs again.
        self.attachments.remove(sandbox)
    }

    pub(crate) fn check(&self, request: &NetworkRequest) -> Result<(), NetworkError> {
        let known = self.allocator.lock().get(&request.sandbox);
        let lease = known.ok_or_else(|| NetworkDamage::NoAddress(request.sandbox.clone()))?;
        let ready = self.ready(true)?;
        let netns = netns::open(&request.netns).map_err(NetworkDamage::Netns)?;
        pod_interface::missing(&ready, &lease, &netns)
    }

    /// Frees interfaces, addresses and rules without a live or recorded sandbox.
    pub(crate) fn reconcile(&self, live: &BTreeSet<String>) -> Result<Vec<String>, NetworkError> {
        let ready = self.ready(true)?;
        let mut freed = Vec::new();
        let mut socket = RouteSocket::open()?;
        let links = socket.links()?;
        let neighbours = socket.neighbours()?;
        freed.extend(self.recover_leases(live, &ready, &links, &neighbours));
        let leases = self.allocator.lock().leases();
        let mut ours: BTreeSet<String> = live
            .iter()
            .map(|sandbox| self.names.host_interface(sandbox))
            .collect();
        ours.extend(leases.iter().map(|lease| lease.host_interface.clone()));
        setup::reapply_port_settings(&mut socket, &links, &ready, &leases)?;
        for link in links {
            let stray = link.kind == "veth"
                && link.name.starts_with(&self.names.prefix)
                && (link.master.is_none() || link.master == Some(ready.index))
                && !ours.contains(&link.name);
            if !stray {
                continue;
            }
            let mut changes = Changes::default();
            changes.set_group(&link.name, self.names.deletion_group);
            match socket.apply(changes, || format!("remove {}", link.name)) {
                Err(error) if !error.is_missing() => return Err(error.into()),
                _ => {}
            }
            freed.push(format!("interface {} without a sandbox", link.name));
            self.link_reaper.add(PendingDelete {
                interface: link.name,
                addresses: Vec::new(),
            });
        }
        let known: BTreeSet<IpAddr> = leases
            .iter()
            .flat_map(|lease| lease.addresses.iter().copied())
            .collect();
        // If a record was corrupt, this entry is the only trace of the pod's address: it is
        // reserved, because the pod may still use it.
        let keep = !self.attachments.damaged().is_empty();
        let mut changes = Changes::default();
        for neighbour in neighbours {
            if neighbour.link != ready.index || known.contains(&neighbour.address) {
                continue;
            }
            if neighbour.address.is_multicast() || neighbour.address.is_unspecified() {
                continue;
            }
            if keep {
                self.allocator.lock().reserve(neighbour.address);
            } else {
                changes.delete_neighbour(neighbour.link, neighbour.address);
                freed.push(format!("stale neighbour entry of {}", neighbour.address));
            }
        }
        match socket.apply(changes, || "delete stale neighbour entries".to_owned()) {
            Err(error) if !error.is_missing() => return Err(error.into()),
            _ => {}
        }
        self.tables.lock().rebuild(&self.pods());
        self.link_reaper.wait();
        Ok(freed)
    }

    /// Recovers the leases of running pods with lost records from the host's interfaces and
    /// neighbours, so that their packets still pass and DEL cleans up. Returns the recovered ones.
    fn recover_leases(
        &self,
        live: &BTreeSet<String>,
        ready: &ReadyBridge,
        links: &[Link],
        neighbours: &[Neighbour],
    ) -> Vec<String> {
        let mut told = Vec::new();
        let mut allocator = self.allocator.lock();
        let ranges = allocator.ranges();
        for sandbox in live {
            let name = self.names.host_interface(sandbox);
            let link = links.iter().find(|link| link.name == name);
            let (None, Some(link)) = (allocator.get(sandbox), link) else {
                continue;
            };
            if let Some(lease) = recovered_lease::lease(link, ready.index, neighbours, &ranges) {
                told.push(format!("recovered the lost record of sandbox {sandbox}"));
                allocator.restore(sandbox, &PodRef::unknown(sandbox), &lease);
            }
        }
        told
    }

    /// Removes the bridge and its rules if no pod is on it.
    pub(crate) fn remove_unused(&self) -> Result<Vec<String>, NetworkError> {
        let mut ready = self.ready.lock();
        if !self.allocator.lock().leases().is_empty() {
            return Ok(Vec::new());
        }
        let mut gone = Vec::new();
        let mut socket = RouteSocket::open()?;
        let link = socket.link(&self.names.bridge)?;
        let links = socket.links()?;
        let empty = |link: &Link| !links.iter().any(|port| port.master == Some(link.index));
        if link.is_some_and(|link| link.kind == "bridge" && empty(&link)) {
            let mut changes = Changes::default();
            changes.delete_link(&self.names.bridge);
            socket.apply(changes, || {
                format!("remove the bridge {}", self.names.bridge)
            })?;
            gone.push(format!("unused bridge {}", self.names.bridge));
        }
        gone.extend(self.tables.lock().remove()?);
        *ready = None;
        Ok(gone)
    }

    pub(crate) fn set_pod_cidrs(&self, cidrs: &[Cidr], set_up: bool) -> Result<(), NetworkError> {
        ranges::check(cidrs)?;
        let mut ready = self.ready.lock();
        let same = self.ranges.lock().pod_cidrs() == cidrs;
        if same {
            return Ok(());
        }
        let old = self.ranges.lock().set_pod_cidrs(cidrs)?;
        if !set_up {
            *ready = None;
            return Ok(());
        }
        match self.set_up() {
            Ok(done) => {
                *ready = Some(done);
                Ok(())
            }
            Err(error) => {
                *ready = None;
                self.ranges.lock().set_pod_cidrs(&old)?;
                Err(error)
            }
        }
    }

    /// The bridge, which is set up if necessary. `look` checks that it has not been removed since.
    fn ready(&self, look: bool) -> Result<ReadyBridge, NetworkError> {
        let mut ready = self.ready.lock();
        if let Some(found) = &*ready {
            let there = !look || {
                let mut socket = RouteSocket::open()?;
                let link = socket.link(&found.name)?;
                link.is_some_and(|link| link.index == found.index && link.up)
            };
            if there {
                return Ok(found.clone());
            }
            *ready = None;
        }
        let made = self.set_up()?;
        *ready = Some(made.clone());
        Ok(made)
    }

    fn set_up(&self) -> Result<ReadyBridge, NetworkError> {
        let mut socket = RouteSocket::open()?;
        let host = HostState::read(&mut socket)?;
        let own = host.named(&self.names.bridge).map(|link| link.index);
        let wanted = {
            let mut ranges = self.ranges.lock();
            let wanted = ranges.wanted(&self.settings.subnets, || ranges::choose(&host.routes))?;
            ranges::check(&wanted)?;
            for range in &wanted {
                if let Some(why) = ranges::clash(*range, &host.routes, &host.links, own) {
                    return Err(why.into());
                }
            }
            self.allocator
                .lock()
                .set_ranges(&wanted, |range| ranges.next(range));
            wanted
        };
        let all = self.allocator.lock().ranges();
        let bridge = setup::bridge(&mut socket, &host, &self.names, &all, &self.settings)?;
        let forwarding = setup::forwarding(&self.names, &wanted);
        // The bridge is new: the interfaces of running pods are not attached to it.
        if own != Some(bridge.index) {
            let leases = self.allocator.lock().leases();
            // Errors are ignored: a pod without its interface can't be reattached, and `check`
            // reports it.
            let _ = setup::reattach(&mut socket, &host, &bridge, &leases);
        }
        let mut tables = self.tables.lock();
        tables.forwarding = forwarding;
        tables.rebuild(&self.pods());
        Ok(bridge)
    }
}

/// Conntrack entries of connectionless protocols would otherwise keep the old translation.
fn forget_connections(ports: &[PortMapping]) {
    for protocol in [Protocol::Udp, Protocol::Sctp] {
        let of_protocol: Vec<u16> = ports
            .iter()
            .filter(|port| port.protocol == protocol)
            .map(|port| port.host_port)
            .collect();
        if !of_protocol.is_empty() {
            // Without this the entries time out.
            let _ = nft::forget(protocol.number(), &of_protocol);
        }
    }
}

fn result(lease: &Lease, request: &NetworkRequest) -> NetworkResult {
    let limited = [
        "kubernetes.io/ingress-bandwidth",
        "kubernetes.io/egress-bandwidth",
    ];
    NetworkResult {
        ips: lease.addresses.clone(),
        interface: pod_interface::INSIDE.to_owned(),
        mac: lease
            .addresses
            .first()
            .map(|&address| names::show_mac(names::inside_mac(address))),
        host_interface: Some(lease.host_interface.clone()),
        warnings: limited
            .iter()
            .filter(|name| request.annotations.contains_key(**name))
            .map(|name| {
                format!("the annotation {name} has no effect with the built-in bridge: use a CNI configuration with the bandwidth plugin")
            })
            .collect(),
    }
}
