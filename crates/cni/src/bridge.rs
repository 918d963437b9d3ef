//! The built-in network: a bridge with the first address of the pods' range, a pair of interfaces for
//! each pod, and address translation by nftables. No other program is needed.

mod book;
mod burial;
mod harden;
mod host_ports;
mod localnet;
mod lost;
mod names;
mod plumbing;
mod pool;
mod probe;
mod ranges;
mod rules;
mod senders;
mod setup;
mod state;
mod sysctl;
mod tables;

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rubelet_base::ErrorChain;
use rubelet_host::{
    netlink::{Changes, Link, Neighbour, RouteSocket},
    netns, nft,
};

use crate::{
    Cidr, NetworkError, NetworkRequest, NetworkResult, NetworkSettings, PortMapping, Protocol,
    attachment::{Attachment, How, Lease, PodRef},
    attachments::Attachments,
};

pub use probe::missing_sender_rules;

use book::{Book, NoLease};
use burial::{Burial, Gone};
use names::Names;
use plumbing::{Reached, Unplumbed, failed};
use setup::{HostState, Ready};
use state::RangeState;
use tables::{Pods, Tables};

/// The built-in network. All functions block.
#[derive(Debug)]
pub(crate) struct BridgeNetwork {
    names: Names,
    settings: Arc<NetworkSettings>,
    attachments: Arc<Attachments>,
    book: Arc<Mutex<Book>>,
    burial: Arc<Burial>,
    /// The bridge, once it is set up. Held while it is being set up.
    ready: Mutex<Option<Ready>>,
    ranges: Mutex<RangeState>,
    /// Held while rules are changed.
    tables: Mutex<Tables>,
}

impl BridgeNetwork {
    /// The network with what the records tell. The bridge is made when it is first needed.
    pub(crate) fn new(
        settings: Arc<NetworkSettings>,
        attachments: Arc<Attachments>,
    ) -> Result<Self, NetworkError> {
        let names = Names::new(&settings.bridge_name);
        let mut book = Book::default();
        for attachment in attachments.all() {
            if let How::Bridge(lease) = &attachment.how {
                book.restore(&attachment.sandbox, &attachment.pod, lease);
            }
        }
        let book = Arc::new(Mutex::new(book));
        Ok(Self {
            burial: Arc::new(Burial::new(names.doomed, Arc::clone(&book))),
            ranges: Mutex::new(RangeState::load(&settings.state_dir)?),
            tables: Mutex::new(Tables::new(names.clone(), Arc::clone(&settings))),
            names,
            settings,
            attachments,
            book,
            ready: Mutex::default(),
        })
    }

    /// Whether pods can be added: makes the bridge, or looks whether it is still there.
    pub(crate) fn status(&self) -> Result<(), NetworkError> {
        self.ready(true)?;
        self.keep_tables();
        Ok(())
    }

    /// Makes rules that others changed or removed anew. Nothing to do while there is no bridge.
    pub(crate) fn keep_tables(&self) {
        if lock(&self.ready).is_some() {
            lock(&self.tables).keep(|| self.pods());
        }
    }

    fn pods(&self) -> Pods {
        let book = lock(&self.book);
        Pods {
            ranges: book.ranges(),
            leases: book.leases(),
        }
    }

    /// What works less well than it should.
    pub(crate) fn warnings(&self) -> Vec<String> {
        if lock(&self.ready).is_none() {
            return Vec::new();
        }
        let mut warnings = lock(&self.tables).warnings();
        let closed = nft::closed_forwarding().unwrap_or_default();
        warnings.extend(closed.into_iter().map(|chain| {
            format!(
                "the nftables chain {chain} drops what its rules do not accept: pods reach nothing but this host unless packets from and to {} are accepted there",
                self.names.bridge
            )
        }));
        warnings
    }

    pub(crate) fn add(&self, request: &NetworkRequest) -> Result<NetworkResult, NetworkError> {
        let mut ready = self.ready(false)?;
        let netns = netns::open(&request.netns).map_err(|error| failed(&error))?;
        let pod = PodRef::of(request);
        self.check_ports(&pod, &request.port_mappings)?;
        let renewed = lock(&self.book)
            .renew(&request.sandbox, &pod, &request.port_mappings)
            .map_err(NetworkError::Refused)?;
        let (lease, again) = match renewed {
            Some(lease) => (lease, true),
            None => (self.lease(request, &pod)?, false),
        };
        let attachment = Attachment {
            sandbox: request.sandbox.clone(),
            pod: pod.clone(),
            netns: request.netns.clone(),
            how: How::Bridge(lease.clone()),
        };
        let connect = |ready: &mut Ready| {
            self.attachments.save(&attachment)?;
            // Before it has an interface, what it may send with is known, and its ports are open.
            lock(&self.tables).admit(&pod, &lease, || self.pods())?;
            if again && plumbing::missing(ready, &lease, &netns).is_ok() {
                return Ok(());
            }
            let reached = match plumbing::connect(ready, &lease, &pod, &netns) {
                Err(Unplumbed::NoBridge) => {
                    *ready = self.ready(true)?;
                    plumbing::connect(ready, &lease, &pod, &netns)
                }
                other => other,
            }
            .map_err(|error| match error {
                Unplumbed::Failed(error) => error,
                Unplumbed::NoBridge => {
                    NetworkError::Failed(format!("the bridge {} is gone", ready.name))
                }
            })?;
            if reached == Reached::ByRoute {
                lock(&self.tables).reach_by_loopback(&lease.host_interface);
            }
            Ok(())
        };
        let added = connect(&mut ready);
        forget_connections(&lease.ports);
        if let Err(error) = added {
            // What can't be undone stays recorded, and goes with the pod.
            let _ = self.del(&request.sandbox);
            return Err(error);
        }
        Ok(result(&lease, request))
    }

    fn lease(&self, request: &NetworkRequest, pod: &PodRef) -> Result<Lease, NetworkError> {
        let take = || {
            let name = self.names.host_interface(&request.sandbox);
            let mut book = lock(&self.book);
            let lease = book.lease(&request.sandbox, pod, name, &request.port_mappings)?;
            Ok((lease, book.next()))
        };
        let taken = match take() {
            Err(NoLease::Later) => {
                self.burial.wait();
                take()
            }
            taken => taken,
        };
        match taken {
            Ok((lease, next)) => {
                lock(&self.ranges).note(&next)?;
                Ok(lease)
            }
            Err(NoLease::Refused(error)) => Err(error),
            Err(NoLease::Later) => Err(NetworkError::Failed(
                "no address is free yet: those of removed pods are still in use by the kernel"
                    .to_owned(),
            )),
        }
    }

    /// Ports that could never work.
    fn check_ports(&self, pod: &PodRef, ports: &[PortMapping]) -> Result<(), NetworkError> {
        let ranges = lock(&self.book).ranges();
        for port in ports {
            let Some(ip) = host_ports::named(port.host_ip) else {
                continue;
            };
            if ip == IpAddr::from(std::net::Ipv6Addr::LOCALHOST) {
                return Err(NetworkError::Refused(format!(
                    "pod {pod} wants host port {} of [::1], which the kernel cannot lead to a pod: use 127.0.0.1",
                    port.host_port
                )));
            }
            if !ranges.iter().any(|range| range.is_ipv4() == ip.is_ipv4()) {
                return Err(NetworkError::Refused(format!(
                    "pod {pod} wants host port {} of {ip}, but pods have no addresses of that family",
                    port.host_port
                )));
            }
        }
        Ok(())
    }

    /// As [`Self::del`], for a pod without a record.
    pub(crate) fn forget(&self, sandbox: &str) -> Result<(), NetworkError> {
        let known = lock(&self.book).get(sandbox).is_some();
        if known { self.del(sandbox) } else { Ok(()) }
    }

    /// Takes a pod off the network. A pod that isn't known is none of ours.
    pub(crate) fn del(&self, sandbox: &str) -> Result<(), NetworkError> {
        let known = lock(&self.book).get(sandbox);
        let Some(lease) = known else {
            return self.attachments.remove(sandbox);
        };
        plumbing::condemn(&lease, &self.names.bridge, self.names.doomed)
            .map_err(|error| failed(&error))?;
        {
            let mut tables = lock(&self.tables);
            lock(&self.book).end(sandbox);
            tables.dismiss(&lease, || self.pods());
        }
        forget_connections(&lease.ports);
        self.burial.add(Gone {
            interface: lease.host_interface,
            addresses: lease.addresses,
        });
        self.attachments.remove(sandbox)
    }

    pub(crate) fn check(&self, request: &NetworkRequest) -> Result<(), NetworkError> {
        let known = lock(&self.book).get(&request.sandbox);
        let lease = known.ok_or_else(|| {
            NetworkError::Broken(format!("sandbox {} has no address", request.sandbox))
        })?;
        let ready = self.ready(true)?;
        let netns = netns::open(&request.netns)
            .map_err(|error| NetworkError::Broken(ErrorChain(&error).to_string()))?;
        plumbing::missing(&ready, &lease, &netns)
    }

    /// Frees what belongs to no sandbox that is alive or recorded.
    pub(crate) fn reconcile(&self, live: &BTreeSet<String>) -> Result<Vec<String>, NetworkError> {
        let ready = self.ready(true)?;
        let mut freed = Vec::new();
        let mut socket = RouteSocket::open().map_err(|error| failed(&error))?;
        let links = socket.links().map_err(|error| failed(&error))?;
        let neighbours = socket.neighbours().map_err(|error| failed(&error))?;
        freed.extend(self.restore_lost(live, &ready, &links, &neighbours));
        let leases = lock(&self.book).leases();
        let mut ours: BTreeSet<String> = live
            .iter()
            .map(|sandbox| self.names.host_interface(sandbox))
            .collect();
        ours.extend(leases.iter().map(|lease| lease.host_interface.clone()));
        setup::refit(&mut socket, &links, &ready, &leases).map_err(NetworkError::Failed)?;
        for link in links {
            let stray = link.kind == "veth"
                && link.name.starts_with(&self.names.prefix)
                && (link.master.is_none() || link.master == Some(ready.index))
                && !ours.contains(&link.name);
            if !stray {
                continue;
            }
            let mut changes = Changes::default();
            changes.set_group(&link.name, self.names.doomed);
            match socket.apply(changes, || format!("remove {}", link.name)) {
                Err(error) if !error.is_missing() => return Err(failed(&error)),
                _ => {}
            }
            freed.push(format!("interface {} of no sandbox", link.name));
            self.burial.add(Gone {
                interface: link.name,
                addresses: Vec::new(),
            });
        }
        let known: BTreeSet<IpAddr> = leases
            .iter()
            .flat_map(|lease| lease.addresses.iter().copied())
            .collect();
        // Without a pod's record its address is known from here; it is not given out again while
        // the pod may have it.
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
                lock(&self.book).reserve(neighbour.address);
            } else {
                changes.delete_neighbour(neighbour.link, neighbour.address);
                freed.push(format!("hardware address of {}", neighbour.address));
            }
        }
        match socket.apply(changes, || "forget hardware addresses".to_owned()) {
            Err(error) if !error.is_missing() => return Err(failed(&error)),
            _ => {}
        }
        lock(&self.tables).rebuild(&self.pods());
        self.burial.wait();
        Ok(freed)
    }

    /// Pods that run and whose record is lost: what they have is read from the host, so that they may
    /// go on sending and are removed like others. Tells whom.
    fn restore_lost(
        &self,
        live: &BTreeSet<String>,
        ready: &Ready,
        links: &[Link],
        neighbours: &[Neighbour],
    ) -> Vec<String> {
        let mut told = Vec::new();
        let mut book = lock(&self.book);
        let ranges = book.ranges();
        for sandbox in live {
            let name = self.names.host_interface(sandbox);
            let link = links.iter().find(|link| link.name == name);
            let (None, Some(link)) = (book.get(sandbox), link) else {
                continue;
            };
            if let Some(lease) = lost::lease(link, ready.index, neighbours, &ranges) {
                told.push(format!("the lost record of sandbox {sandbox}"));
                book.restore(sandbox, &PodRef::unknown(sandbox), &lease);
            }
        }
        told
    }

    /// Removes the bridge and its rules where they are there and no pod is on it.
    pub(crate) fn retire(&self) -> Result<Vec<String>, NetworkError> {
        let mut ready = lock(&self.ready);
        if !lock(&self.book).leases().is_empty() {
            return Ok(Vec::new());
        }
        let mut gone = Vec::new();
        let mut socket = RouteSocket::open().map_err(|error| failed(&error))?;
        let link = socket
            .link(&self.names.bridge)
            .map_err(|error| failed(&error))?;
        let links = socket.links().map_err(|error| failed(&error))?;
        let empty = |link: &Link| !links.iter().any(|port| port.master == Some(link.index));
        if link.is_some_and(|link| link.kind == "bridge" && empty(&link)) {
            let mut changes = Changes::default();
            changes.delete_link(&self.names.bridge);
            socket
                .apply(changes, || {
                    format!("remove the bridge {}", self.names.bridge)
                })
                .map_err(|error| failed(&error))?;
            gone.push(format!("bridge {}, which no pod is on", self.names.bridge));
        }
        gone.extend(
            lock(&self.tables)
                .remove()
                .map_err(|error| failed(&error))?,
        );
        *ready = None;
        Ok(gone)
    }

    pub(crate) fn set_pod_cidrs(&self, cidrs: &[Cidr], set_up: bool) -> Result<(), NetworkError> {
        ranges::check(cidrs).map_err(NetworkError::Refused)?;
        let mut ready = lock(&self.ready);
        let same = lock(&self.ranges).pod_cidrs() == cidrs;
        if same {
            return Ok(());
        }
        let old = lock(&self.ranges).set_pod_cidrs(cidrs)?;
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
                lock(&self.ranges).set_pod_cidrs(&old)?;
                Err(error)
            }
        }
    }

    /// The bridge. It is set up if it isn't yet; `look` makes sure that nobody removed it since.
    fn ready(&self, look: bool) -> Result<Ready, NetworkError> {
        let mut ready = lock(&self.ready);
        if let Some(found) = &*ready {
            let there = !look || {
                let mut socket = RouteSocket::open().map_err(|error| failed(&error))?;
                let link = socket.link(&found.name).map_err(|error| failed(&error))?;
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

    fn set_up(&self) -> Result<Ready, NetworkError> {
        let mut socket = RouteSocket::open().map_err(|error| failed(&error))?;
        let host = HostState::read(&mut socket).map_err(|error| failed(&error))?;
        let own = host.named(&self.names.bridge).map(|link| link.index);
        let wanted = {
            let mut ranges = lock(&self.ranges);
            let wanted = ranges.wanted(&self.settings.subnets, || ranges::choose(&host.routes))?;
            ranges::check(&wanted).map_err(NetworkError::Refused)?;
            for range in &wanted {
                if let Some(why) = ranges::clash(*range, &host.routes, &host.links, own) {
                    return Err(NetworkError::Refused(why));
                }
            }
            lock(&self.book).set_ranges(&wanted, |range| ranges.next(range));
            wanted
        };
        let all = lock(&self.book).ranges();
        let bridge = setup::bridge(&mut socket, &host, &self.names, &all, &self.settings)
            .map_err(NetworkError::Failed)?;
        let forwarding = setup::forwarding(&self.names, &wanted);
        if own != Some(bridge.index) {
            let leases = lock(&self.book).leases();
            // A pod whose interface is gone has nothing to be put back; its check tells.
            let _ = setup::reattach(&mut socket, &host, &bridge, &leases);
        }
        let mut tables = lock(&self.tables);
        tables.forwarding = forwarding;
        tables.rebuild(&self.pods());
        Ok(bridge)
    }
}

/// Protocols without an end would otherwise follow the translation of before.
fn forget_connections(ports: &[PortMapping]) {
    for protocol in [Protocol::Udp, Protocol::Sctp] {
        let of_protocol: Vec<u16> = ports
            .iter()
            .filter(|port| port.protocol == protocol)
            .map(|port| port.host_port)
            .collect();
        if !of_protocol.is_empty() {
            // Where connections can't be listed they end by themselves, later.
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
        interface: plumbing::INSIDE.to_owned(),
        mac: lease
            .addresses
            .first()
            .map(|&address| names::show_mac(names::inside_mac(address))),
        host_interface: Some(lease.host_interface.clone()),
        warnings: limited
            .iter()
            .filter(|name| request.annotations.contains_key(**name))
            .map(|name| {
                format!("the annotation {name} has no effect on the built-in bridge: it needs a CNI configuration with the bandwidth plugin")
            })
            .collect(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
