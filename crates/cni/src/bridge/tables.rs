//! The two nftables tables of a bridge: made as a whole, looked at, and made anew when they are not as
//! they should be.
//!
//! A kernel that does not know tables of bridges lets pods send with any address; that is told, and pods
//! start. A table that is refused for any other reason keeps new pods away, as far as they need it.

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
    Cidr, NetworkError, NetworkSettings,
    attachment::{Lease, PodRef},
};

use super::{
    localnet,
    names::Names,
    rules::{self, Elements},
    senders,
};

/// How often a table is made until nobody else changed nftables in that moment.
const TRIES: u32 = 3;

/// Who is on the bridge.
#[derive(Debug)]
pub(super) struct Pods {
    pub(super) ranges: Vec<Cidr>,
    pub(super) leases: Vec<Lease>,
}

/// The tables, and what is known of them.
#[derive(Debug)]
pub(super) struct Tables {
    names: Names,
    settings: Arc<NetworkSettings>,
    kernel: Kernel,
    /// Address translation, and the guard of the host's loopback.
    addresses: Table,
    /// What pods may send with.
    senders: Table,
    /// Why 127.0.0.1 doesn't lead to pods although the table of addresses is in force.
    localnet: Option<String>,
    /// The last generation of nftables at which both were found as they should be.
    checked: Option<u32>,
    /// What the host doesn't let pods do.
    pub(super) forwarding: Vec<String>,
}

/// The connection to the kernel, opened when it is needed and again after an error.
#[derive(Debug, Default)]
struct Kernel(Option<Connection>);

impl Kernel {
    fn ask<T>(
        &mut self,
        act: impl FnOnce(&mut Connection) -> Result<T, NetlinkError>,
    ) -> Result<T, NetlinkError> {
        let mut connection = match self.0.take() {
            Some(connection) => connection,
            None => Connection::open()?,
        };
        let done = act(&mut connection)?;
        self.0 = Some(connection);
        Ok(done)
    }
}

#[derive(Debug)]
struct Table {
    family: TableFamily,
    trouble: Option<Trouble>,
    /// As it was read after it was made.
    shape: Option<Shape>,
}

/// Why a table isn't in force.
#[derive(Debug)]
struct Trouble {
    why: String,
    /// The kernel doesn't know such tables.
    unsupported: bool,
}

impl Table {
    fn new(family: TableFamily) -> Self {
        Self {
            family,
            trouble: None,
            shape: None,
        }
    }

    /// Replaces the table, and reads what the kernel made of it.
    fn make<'t>(&mut self, kernel: &mut Kernel, table: &'t str, build: impl Fn() -> Batch<'t>) {
        self.shape = None;
        self.trouble = None;
        let what = || match self.family {
            TableFamily::Inet => format!("make the nftables table {table}"),
            TableFamily::Bridge => format!("make the nftables table {table} of bridges"),
        };
        for _ in 0..TRIES {
            let before = kernel.ask(Connection::generation);
            let made = kernel.ask(|nft| nft.commit(build(), what));
            if let Err(error) = made {
                self.trouble = Some(Trouble::of(&error));
                return;
            }
            let read = kernel.ask(|nft| nft.shape(self.family, table));
            let after = kernel.ask(Connection::generation);
            // A change by somebody else counts one more; 0 is left out.
            if let (Ok(before), Ok(Some(shape)), Ok(after)) = (before, read, after)
                && after == before.wrapping_add(1).max(1)
            {
                self.shape = Some(shape);
                return;
            }
        }
    }

    /// Whether a table that this kernel knows isn't in force.
    fn is_refused(&self) -> bool {
        let refused = |trouble: &Trouble| !trouble.unsupported;
        self.trouble.as_ref().is_some_and(refused)
    }

    /// Whether the kernel holds what was made, without regard to elements.
    fn is_as_made(&self, kernel: &mut Kernel, table: &str) -> bool {
        let now = kernel.ask(|nft| nft.shape(self.family, table));
        self.shape.is_some() && now.is_ok_and(|now| now == self.shape)
    }

    /// Whether the sets hold what they should.
    fn holds(
        &self,
        kernel: &mut Kernel,
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
            let found = kernel.ask(|nft| nft.elements(self.family, table, set));
            found.is_ok_and(|found| found == wanted)
        })
    }
}

impl Trouble {
    /// In a transaction that makes all it refers to, `ENOENT` is about a kind of chain or of expression.
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

impl Tables {
    pub(super) fn new(names: Names, settings: Arc<NetworkSettings>) -> Self {
        Self {
            names,
            settings,
            kernel: Kernel::default(),
            addresses: Table::new(TableFamily::Inet),
            senders: Table::new(TableFamily::Bridge),
            localnet: None,
            checked: None,
            forwarding: Vec::new(),
        }
    }

    /// Makes both tables anew, each in one transaction: what was in force stays so until then.
    pub(super) fn rebuild(&mut self, pods: &Pods) {
        self.make_senders(pods);
        self.make_addresses(pods);
    }

    fn make_senders(&mut self, pods: &Pods) {
        let names = &self.names;
        let build = || senders::build(names, &pods.leases);
        self.senders.make(&mut self.kernel, &names.bridge, build);
    }

    /// 127.0.0.1 leads to pods only behind the guard.
    fn make_addresses(&mut self, pods: &Pods) {
        let (names, settings) = (&self.names, &self.settings);
        let build = || rules::build(names, &pods.ranges, settings, &pods.leases);
        self.addresses.make(&mut self.kernel, &names.bridge, build);
        let wanted = self.addresses.trouble.is_none() && pods.ranges.iter().any(Cidr::is_ipv4);
        let set = match wanted {
            true => localnet::allow(names),
            false => localnet::forbid(names),
        };
        self.localnet = set.err();
    }

    /// Looks whether the tables are as they were made, and makes anew what isn't. While nobody changes
    /// nftables this is one question to the kernel.
    pub(super) fn keep(&mut self, pods: impl FnOnce() -> Pods) {
        let generation = self.kernel.ask(Connection::generation).ok();
        let well = self.addresses.trouble.is_none() && self.senders.trouble.is_none();
        if well && generation.is_some() && generation == self.checked {
            return;
        }
        self.checked = None;
        let pods = &pods();
        let bridge = self.names.bridge.clone();
        let kernel = &mut self.kernel;
        if self.addresses.trouble.is_some() || !self.addresses.is_as_made(kernel, &bridge) {
            // The guard may be gone. It is the setting that waits for it, not the other way round.
            self.localnet = localnet::forbid(&self.names).err();
            self.make_addresses(pods);
        } else {
            let wanted = pods.leases.iter().flat_map(rules::elements).collect();
            if !self
                .addresses
                .holds(kernel, &bridge, &rules::all_sets(), wanted)
            {
                self.make_addresses(pods);
            }
        }
        let wanted = || pods.leases.iter().flat_map(senders::elements).collect();
        let kernel = &mut self.kernel;
        if self.senders.trouble.is_some()
            || !self.senders.is_as_made(kernel, &bridge)
            || !self
                .senders
                .holds(kernel, &bridge, &senders::SETS, wanted())
        {
            self.make_senders(pods);
        }
        if self.addresses.trouble.is_none() && self.senders.trouble.is_none() {
            // What changed since it was asked for is found by the next look.
            let now = self.kernel.ask(Connection::generation).ok();
            self.checked = generation.filter(|_| now == generation);
        }
    }

    /// Lets a pod send, and opens its ports, before it has an interface. `pods` is asked for when the
    /// tables have to be made anew.
    ///
    /// # Errors
    /// A table that the pod needs isn't in force.
    pub(super) fn admit(
        &mut self,
        pod: &PodRef,
        lease: &Lease,
        pods: impl FnOnce() -> Pods,
    ) -> Result<(), NetworkError> {
        let ports = rules::elements(lease);
        let changed = self.change(lease, |batch, set, list| {
            batch.add_elements(set, list);
        });
        if changed.is_err() || self.senders.is_refused() || self.addresses.trouble.is_some() {
            // Somebody may have flushed all rules; this makes the tables anew with all pods in them.
            let pods = pods();
            if changed.is_err() || self.senders.is_refused() {
                self.make_senders(&pods);
            }
            if changed.is_err() || !ports.is_empty() || self.settings.isolate_pods {
                self.make_addresses(&pods);
            }
        }
        if let Some(Trouble {
            why,
            unsupported: false,
        }) = &self.senders.trouble
        {
            return Err(NetworkError::Failed(format!(
                "cannot hold pod {pod} to its own addresses: {why}"
            )));
        }
        match &self.addresses.trouble {
            Some(Trouble { why, .. }) if !ports.is_empty() => Err(NetworkError::Refused(format!(
                "pod {pod} wants host ports, which need nftables in the kernel: {why}"
            ))),
            Some(Trouble { why, .. }) if self.settings.isolate_pods => Err(NetworkError::Failed(
                format!("cannot keep pod {pod} from other pods, as isolatePods asks for: {why}"),
            )),
            _ => Ok(()),
        }
    }

    /// Takes a pod's addresses and ports out again.
    pub(super) fn dismiss(&mut self, lease: &Lease, pods: impl FnOnce() -> Pods) {
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
            if table.trouble.is_some() {
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
        let what = || "change what a pod may send with".to_owned();
        self.kernel.ask(|nft| nft.commit(batch, what))
    }

    /// 127.0.0.1 leads to a pod that is reached without the bridge, if it does to the others.
    pub(super) fn reach_by_loopback(&mut self, interface: &str) {
        if self.addresses.trouble.is_none() {
            self.localnet = localnet::allow_by(interface).err();
        }
    }

    /// What works less well than it should, one sentence each.
    pub(super) fn warnings(&self) -> Vec<String> {
        let addresses = self.addresses.trouble.as_ref().map(|Trouble { why, .. }| {
            format!("pods have no way out by the host's address, and host ports do not work: {why}")
        });
        let senders = self.senders.trouble.as_ref().map(|Trouble { why, .. }| {
            format!("nothing keeps pods from sending with the addresses of others: {why}")
        });
        let localnet = self.localnet.as_ref().map(|why| {
            format!("connections from 127.0.0.1 to pods are not as they should be: {why}")
        });
        let forwarding = self.forwarding.iter().cloned();
        forwarding
            .chain(addresses)
            .chain(senders)
            .chain(localnet)
            .collect()
    }

    /// Removes both tables. Tells which there were.
    pub(super) fn remove(&mut self) -> Result<Vec<String>, NetlinkError> {
        let name = self.names.bridge.as_str();
        self.localnet = localnet::forbid(&self.names).err();
        let mut gone = Vec::new();
        for (family, told) in [
            (TableFamily::Inet, format!("nftables table {name}")),
            (
                TableFamily::Bridge,
                format!("nftables table {name} of bridges"),
            ),
        ] {
            if nft::has_table(family, name).unwrap_or(false) {
                let mut batch = Batch::new(family, name);
                batch.delete_table();
                let what = || format!("remove the {told}");
                self.kernel.ask(|nft| nft.commit(batch, what))?;
                gone.push(told);
            }
        }
        self.addresses = Table::new(TableFamily::Inet);
        self.senders = Table::new(TableFamily::Bridge);
        self.checked = None;
        Ok(gone)
    }
}
