//! The two nftables tables of a bridge: created as a whole, checked, and recreated if another
//! program changed them.
//!
//! On a kernel without tables of the family bridge pods can send with any address; a warning
//! reports it, and pods start. If a table is rejected for another reason, pods that need it do not
//! start.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rubelet_base::ErrorChain;
use rubelet_host::{
    netlink::NetlinkError,
    nft::{self, Batch, Connection, Element, Shape, TableFamily},
};
use rustix::io::Errno;

use crate::{
    Cidr, NetworkError, NetworkFailure, NetworkRefusal, NetworkSettings,
    attachment::{Lease, PodRef},
};

use super::{
    firewall,
    localnet::{self, LocalnetError},
    names::Names,
    rules,
    senders::{self, Elements},
};

/// Attempts to create a table without a concurrent change of nftables by another program.
const TRIES: u32 = 3;

/// The pods on the bridge.
#[derive(Debug)]
pub(super) struct BridgePods {
    pub(super) ranges: Vec<Cidr>,
    pub(super) leases: Vec<Lease>,
}

/// The tables and their states.
#[derive(Debug)]
pub(super) struct Tables {
    names: Names,
    settings: Arc<NetworkSettings>,
    nft: NftConnection,
    /// Address translation, and the guard of the host's loopback.
    addresses: Table,
    /// The source addresses that pods may use.
    senders: Table,
    /// Why host ports do not work on 127.0.0.1 although the table is in force.
    localnet: Option<String>,
    /// The nftables generation at the last check that found both tables intact.
    checked: Option<u32>,
    /// Messages about IP forwarding.
    pub(super) forwarding: Vec<String>,
    /// Messages about firewalls of the machine that drop packets of pods.
    firewall: Vec<String>,
}

/// The netlink connection, opened on demand and reopened after an error.
#[derive(Debug, Default)]
struct NftConnection(Option<Connection>);

impl NftConnection {
    fn run<T>(
        &mut self,
        act: impl FnOnce(&mut Connection) -> Result<T, NetlinkError>,
    ) -> Result<T, NetlinkError> {
        let mut connection = match self.0.take() {
            Some(connection) => connection,
            None => Connection::open()?,
        };
        // After an error it is dropped: answers to the failed request may still be waiting in the
        // socket.
        let done = act(&mut connection)?;
        self.0 = Some(connection);
        Ok(done)
    }
}

#[derive(Debug)]
struct Table {
    family: TableFamily,
    error: Option<TableError>,
    /// The table as read back after its creation.
    shape: Option<Shape>,
}

/// Why a table is not in force.
#[derive(Debug)]
struct TableError {
    why: String,
    /// The kernel does not support such tables.
    unsupported: bool,
}

impl Table {
    fn new(family: TableFamily) -> Self {
        Self {
            family,
            error: None,
            shape: None,
        }
    }

    /// Replaces the table and reads it back.
    fn make<'t>(
        &mut self,
        connection: &mut NftConnection,
        table: &'t str,
        build: impl Fn() -> Batch<'t>,
    ) {
        self.shape = None;
        self.error = None;
        let what = || match self.family {
            TableFamily::Inet | TableFamily::Ip | TableFamily::Ip6 => {
                format!("create the nftables table {table}")
            }
            TableFamily::Bridge => {
                format!("create the nftables table {table} of the family bridge")
            }
        };
        for _ in 0..TRIES {
            let before = connection.run(Connection::generation);
            let made = connection.run(|nft| nft.commit(build(), what));
            if let Err(error) = made {
                self.error = Some(TableError::of(&error));
                return;
            }
            let read = connection.run(|nft| nft.shape(self.family, table));
            let after = connection.run(Connection::generation);
            // Each transaction increments the generation, skipping 0: a larger difference shows a
            // change by another program.
            if let (Ok(before), Ok(Some(shape)), Ok(after)) = (before, read, after)
                && after == before.wrapping_add(1).max(1)
            {
                self.shape = Some(shape);
                return;
            }
        }
    }

    /// Whether the kernel supports the table and rejected it.
    fn is_refused(&self) -> bool {
        let refused = |error: &TableError| !error.unsupported;
        self.error.as_ref().is_some_and(refused)
    }

    /// Whether the kernel's table is unchanged, apart from set elements.
    fn is_unchanged(&self, connection: &mut NftConnection, table: &str) -> bool {
        let now = connection.run(|nft| nft.shape(self.family, table));
        self.shape.is_some() && now.is_ok_and(|now| now == self.shape)
    }

    /// Whether the sets have the desired elements.
    fn holds(
        &self,
        connection: &mut NftConnection,
        table: &str,
        sets: &[&'static str],
        wanted: Vec<Elements>,
    ) -> bool {
        let mut by_set: BTreeMap<&str, BTreeSet<Element>> = BTreeMap::new();
        for (set, list) in wanted {
            by_set.entry(set).or_default().extend(list);
        }
        sets.iter().all(|set| {
            let wanted = by_set.remove(set).unwrap_or_default();
            let found = connection.run(|nft| nft.elements(self.family, table, set));
            found.is_ok_and(|found| found == wanted)
        })
    }
}

impl TableError {
    /// The transaction creates everything it refers to, so `ENOENT` means an unsupported type of
    /// chain or expression.
    fn of(error: &NetlinkError) -> Self {
        const UNKNOWN: [Errno; 4] = [
            Errno::NOENT,
            Errno::OPNOTSUPP,
            Errno::AFNOSUPPORT,
            Errno::PROTONOSUPPORT,
        ];
        let unknown = |errno| UNKNOWN.iter().any(|known| known.raw_os_error() == errno);
        Self {
            why: ErrorChain(error).to_string(),
            unsupported: error.errno().is_some_and(unknown),
        }
    }
}

fn text(error: &LocalnetError) -> String {
    ErrorChain(error).to_string()
}

impl Tables {
    pub(super) fn new(names: Names, settings: Arc<NetworkSettings>) -> Self {
        Self {
            names,
            settings,
            nft: NftConnection::default(),
            addresses: Table::new(TableFamily::Inet),
            senders: Table::new(TableFamily::Bridge),
            localnet: None,
            checked: None,
            forwarding: Vec::new(),
            firewall: Vec::new(),
        }
    }

    /// Recreates both tables, each in one transaction: the old rules stay in force until then.
    pub(super) fn rebuild(&mut self, pods: &BridgePods) {
        self.make_senders(pods);
        self.make_addresses(pods);
        self.open_firewall();
    }

    fn open_firewall(&mut self) {
        let (names, bridge) = (&self.names, &self.names.bridge);
        self.firewall = match self.nft.run(|nft| firewall::open(nft, names)) {
            Ok(closed) => closed
                .iter()
                .map(|chain| format!("the nftables chain {chain} has the policy drop: pods reach only this host unless the chain accepts packets from and to {bridge}"))
                .collect(),
            // A kernel without nftables, which the tables' own messages tell, drops nothing by them.
            Err(_) if self.addresses.error.is_some() => Vec::new(),
            Err(error) => vec![format!(
                "packets of pods may be dropped by a firewall of this host: {}",
                ErrorChain(&error)
            )],
        };
    }

    fn make_senders(&mut self, pods: &BridgePods) {
        let names = &self.names;
        let build = || senders::build(names, &pods.leases);
        self.senders.make(&mut self.nft, &names.bridge, build);
    }

    /// Enables host ports on 127.0.0.1 only if the guard is in force.
    fn make_addresses(&mut self, pods: &BridgePods) {
        let (names, settings) = (&self.names, &self.settings);
        let build = || rules::build(names, &pods.ranges, settings, &pods.leases);
        self.addresses.make(&mut self.nft, &names.bridge, build);
        let wanted = self.addresses.error.is_none() && pods.ranges.iter().any(Cidr::is_ipv4);
        let set = match wanted {
            true => localnet::allow(names),
            false => localnet::forbid(names),
        };
        self.localnet = set.err().as_ref().map(text);
    }

    /// Checks that the tables are unchanged, and recreates them otherwise. While nftables does not
    /// change at all, this costs one request to the kernel.
    pub(super) fn ensure(&mut self, pods: impl FnOnce() -> BridgePods) {
        let generation = self.nft.run(Connection::generation).ok();
        let well = self.addresses.error.is_none() && self.senders.error.is_none();
        if well && generation.is_some() && generation == self.checked {
            return;
        }
        self.checked = None;
        let pods = &pods();
        let bridge = self.names.bridge.clone();
        let connection = &mut self.nft;
        if self.addresses.error.is_some() || !self.addresses.is_unchanged(connection, &bridge) {
            // The guard may be missing, so the setting is disabled first: it must never be on
            // without the guard.
            self.localnet = localnet::forbid(&self.names).err().as_ref().map(text);
            self.make_addresses(pods);
        } else {
            let wanted = pods.leases.iter().flat_map(rules::elements).collect();
            if !self
                .addresses
                .holds(connection, &bridge, &rules::all_sets(), wanted)
            {
                self.make_addresses(pods);
            }
        }
        let wanted = || pods.leases.iter().flat_map(senders::elements).collect();
        let connection = &mut self.nft;
        if self.senders.error.is_some()
            || !self.senders.is_unchanged(connection, &bridge)
            || !self
                .senders
                .holds(connection, &bridge, &senders::SETS, wanted())
        {
            self.make_senders(pods);
        }
        self.open_firewall();
        if self.addresses.error.is_none() && self.senders.error.is_none() {
            // A change during this check is found by the next one.
            let now = self.nft.run(Connection::generation).ok();
            self.checked = generation.filter(|_| now == generation);
        }
    }

    /// Adds a pod's addresses and host ports to the tables, before it has an interface. `pods` is
    /// called if the tables must be recreated.
    ///
    /// # Errors
    /// A table that the pod needs is not in force.
    pub(super) fn add_pod(
        &mut self,
        pod: &PodRef,
        lease: &Lease,
        pods: impl FnOnce() -> BridgePods,
    ) -> Result<(), NetworkError> {
        let ports = rules::elements(lease);
        let changed = self.change(lease, |batch, set, list| {
            batch.add_elements(set, list);
        });
        if changed.is_err() || self.senders.is_refused() || self.addresses.error.is_some() {
            // Another program may have flushed all rules; this recreates the tables with all pods.
            let pods = pods();
            if changed.is_err() || self.senders.is_refused() {
                self.make_senders(&pods);
            }
            if changed.is_err() || !ports.is_empty() || self.settings.isolate_pods {
                self.make_addresses(&pods);
            }
        }
        if let Some(TableError {
            why,
            unsupported: false,
        }) = &self.senders.error
        {
            return Err(NetworkFailure::SenderTable {
                pod: pod.to_string(),
                why: why.clone(),
            }
            .into());
        }
        match &self.addresses.error {
            Some(TableError { why, .. }) if !ports.is_empty() => {
                Err(NetworkRefusal::HostPortsWithoutTable {
                    pod: pod.to_string(),
                    why: why.clone(),
                }
                .into())
            }
            Some(TableError { why, .. }) if self.settings.isolate_pods => {
                Err(NetworkFailure::Isolation {
                    pod: pod.to_string(),
                    why: why.clone(),
                }
                .into())
            }
            _ => Ok(()),
        }
    }

    /// Removes a pod's addresses and host ports from the tables.
    pub(super) fn remove_pod(&mut self, lease: &Lease, pods: impl FnOnce() -> BridgePods) {
        let changed = self.change(lease, |batch, set, list| {
            batch.delete_elements(set, list);
        });
        if changed.is_err() {
            self.rebuild(&pods());
        }
    }

    /// Changes a pod's elements in the tables that are in force, in one transaction.
    fn change(
        &mut self,
        lease: &Lease,
        with: impl Fn(&mut Batch<'_>, &str, &[Element]),
    ) -> Result<(), NetlinkError> {
        let mut batch = Batch::new(TableFamily::Bridge, &self.names.bridge);
        let mut changes = 0;
        for (table, elements) in [
            (&self.senders, senders::elements(lease)),
            (&self.addresses, rules::elements(lease)),
        ] {
            if table.error.is_some() {
                continue;
            }
            batch.turn_to(table.family, &self.names.bridge);
            for (set, list) in &elements {
                with(&mut batch, set, list);
                changes += 1;
            }
        }
        if changes == 0 {
            return Ok(());
        }
        let what = || "update a pod's nftables elements".to_owned();
        self.nft.run(|nft| nft.commit(batch, what))
    }

    /// Enables host ports on 127.0.0.1 for a pod outside of the bridge, if the guard is in force.
    pub(super) fn allow_localnet(&mut self, interface: &str) {
        if self.addresses.error.is_none() {
            self.localnet = localnet::allow_by(interface).err().as_ref().map(text);
        }
    }

    /// Problems that do not keep pods from being added, one sentence each.
    pub(super) fn warnings(&self) -> Vec<String> {
        let addresses = self.addresses.error.as_ref().map(|TableError { why, .. }| {
            format!("masquerading and host ports of pods do not work: {why}")
        });
        let senders = self.senders.error.as_ref().map(|TableError { why, .. }| {
            format!("pods can send with the addresses of other pods: {why}")
        });
        let localnet = self
            .localnet
            .as_ref()
            .map(|why| format!("host ports on 127.0.0.1 may not work: {why}"));
        let forwarding = self.forwarding.iter().cloned();
        forwarding
            .chain(addresses)
            .chain(senders)
            .chain(localnet)
            .chain(self.firewall.iter().cloned())
            .collect()
    }

    /// Removes both tables, and the rules in chains of others. Returns which tables existed.
    pub(super) fn remove(&mut self) -> Result<Vec<String>, NetlinkError> {
        let names = &self.names;
        // Rules for interfaces that do not exist do no harm, and tables must go.
        let _ = self.nft.run(|nft| firewall::close(nft, names));
        let name = self.names.bridge.as_str();
        self.localnet = localnet::forbid(&self.names).err().as_ref().map(text);
        let mut gone = Vec::new();
        for (family, told) in [
            (TableFamily::Inet, format!("nftables table {name}")),
            (
                TableFamily::Bridge,
                format!("nftables table {name} of the family bridge"),
            ),
        ] {
            if nft::has_table(family, name).unwrap_or(false) {
                let mut batch = Batch::new(family, name);
                batch.delete_table();
                let what = || format!("remove the {told}");
                self.nft.run(|nft| nft.commit(batch, what))?;
                gone.push(told);
            }
        }
        self.addresses = Table::new(TableFamily::Inet);
        self.senders = Table::new(TableFamily::Bridge);
        self.checked = None;
        Ok(gone)
    }
}
