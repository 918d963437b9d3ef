//! nftables through nfnetlink, without an `nft` binary.
//!
//! A [`Batch`] is one atomic transaction. Only the subset for address translation and for checks of
//! frames' senders is implemented. All numbers are those of `linux/netfilter/nf_tables.h`. Tables
//! of the family `inet` need Linux 5.2 for address translation.

mod chain;
mod conntrack;
mod expression;
mod forward;
pub mod iptables;
mod read;
mod set;
mod trace;

#[cfg(test)]
mod tests;

pub use chain::{ChainName, RuleHandle};
pub use conntrack::forget;
pub use expression::{Expression, Family};
pub use read::Shape;
pub use set::{Bytes, Element, Set, SetKind};
pub use trace::{RuleInfo, RuleTrace, TraceStep};

use crate::netlink::{
    NetlinkError,
    message::Messages,
    socket::{REQUEST, Socket},
};

/// The nfnetlink subsystem of nftables.
const SUBSYSTEM: u16 = 10;

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEWTABLE: u16 = 0;
const GETTABLE: u16 = 1;
const DELTABLE: u16 = 2;
const NEWCHAIN: u16 = 3;
const GETCHAIN: u16 = 4;
const NEWRULE: u16 = 6;
const GETRULE: u16 = 7;
const DELRULE: u16 = 8;
const NEWSET: u16 = 9;
const NEWSETELEM: u16 = 12;
const DELSETELEM: u16 = 14;

/// `NFT_TABLE_F_OWNER`
const TABLE_IS_OWNED: u32 = 2;

/// The verdict `NF_DROP`, also as the policy of a chain.
const NF_DROP: u32 = 0;

const F_CREATE: u16 = 0x400;
const F_APPEND: u16 = 0x800;

/// The packets that the chains of a table see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFamily {
    /// IPv4 and IPv6 packets through the host.
    Inet,
    /// IPv4 packets through the host.
    Ip,
    /// IPv6 packets through the host.
    Ip6,
    /// Frames through bridges.
    Bridge,
}

impl TableFamily {
    /// `NFPROTO_…`
    fn number(self) -> u8 {
        match self {
            Self::Inet => 1,
            Self::Ip => 2,
            Self::Bridge => 7,
            Self::Ip6 => 10,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Inet, Self::Ip, Self::Bridge, Self::Ip6];
        all.into_iter().find(|family| family.number() == number)
    }

    /// The name by which `nft` knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inet => "inet",
            Self::Ip => "ip",
            Self::Bridge => "bridge",
            Self::Ip6 => "ip6",
        }
    }
}

/// The hook of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Packets that came in, before routing.
    Prerouting,
    /// Packets for this host itself.
    Input,
    /// Packets that this host forwards.
    Forward,
    /// Packets of this host's own processes.
    Output,
    /// Packets that are about to leave.
    Postrouting,
}

impl Hook {
    fn number(self) -> u32 {
        match self {
            Self::Prerouting => 0,
            Self::Input => 1,
            Self::Forward => 2,
            Self::Output => 3,
            Self::Postrouting => 4,
        }
    }
}

/// The type of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainKind {
    /// Other chains jump to it.
    Plain,
    /// Packets pass it; lower priorities first.
    Filter(Hook, i32),
    /// The first packet of each connection passes it, and decides about the connection.
    Nat(Hook, i32),
}

/// Changes that are applied atomically.
#[derive(Debug)]
pub struct Batch<'t> {
    family: TableFamily,
    table: &'t str,
    messages: Messages,
    sets: u32,
}

impl<'t> Batch<'t> {
    /// Changes of a table.
    #[must_use]
    pub fn new(family: TableFamily, table: &'t str) -> Self {
        let mut messages = Messages::default();
        messages.begin(BATCH_BEGIN, REQUEST, &header(0, SUBSYSTEM));
        Self {
            family,
            table,
            messages,
            sets: 0,
        }
    }

    /// The following changes apply to another table, in the same transaction.
    pub fn turn_to(&mut self, family: TableFamily, table: &'t str) -> &mut Self {
        self.family = family;
        self.table = table;
        self
    }

    /// Creates a table, unless it exists.
    pub fn add_table(&mut self) -> &mut Self {
        self.begin(NEWTABLE, F_CREATE);
        self
    }

    /// Creates a table that the kernel removes with the socket that commits this. Linux 5.12 and newer
    /// have such tables.
    pub fn add_own_table(&mut self) -> &mut Self {
        self.begin(NEWTABLE, F_CREATE)
            .network_number(2, TABLE_IS_OWNED);
        self
    }

    /// Removes a table with all its contents.
    pub fn delete_table(&mut self) -> &mut Self {
        self.begin(DELTABLE, 0);
        self
    }

    /// Creates a chain, unless it exists.
    pub fn add_chain(&mut self, chain: &str, kind: ChainKind) -> &mut Self {
        let messages = self.begin(NEWCHAIN, F_CREATE).text(3, chain);
        let (name, hook, priority) = match kind {
            ChainKind::Plain => return self,
            ChainKind::Filter(hook, priority) => ("filter", hook, priority),
            ChainKind::Nat(hook, priority) => ("nat", hook, priority),
        };
        messages
            .nest(4, |nest| {
                nest.network_number(1, hook.number())
                    .network_number(2, priority.cast_unsigned());
            })
            .text(7, name);
        self
    }

    /// Adds a rule to the end of a chain.
    pub fn add_rule(&mut self, chain: &str, rule: &[Expression<'_>]) -> &mut Self {
        self.begin(NEWRULE, F_CREATE | F_APPEND)
            .text(2, chain)
            .nest(4, |list| {
                for expression in rule {
                    expression.write(list);
                }
            });
        self
    }

    /// As [`Self::add_rule`], with a comment of at most 127 bytes, which `nft` and `iptables` show.
    pub fn add_rule_with_comment(
        &mut self,
        chain: &str,
        rule: &[Expression<'_>],
        comment: &str,
    ) -> &mut Self {
        self.add_rule(chain, rule);
        self.messages.attribute(7, &forward::user_data(comment));
        self
    }

    /// Removes a rule.
    pub fn delete_rule(&mut self, chain: &str, rule: RuleHandle) -> &mut Self {
        self.begin(DELRULE, 0)
            .text(2, chain)
            .attribute(3, &rule.0.to_be_bytes());
        self
    }

    /// Creates a set or map, unless it exists.
    pub fn add_set(&mut self, set: Set<'_>) -> &mut Self {
        self.sets += 1;
        let number = self.sets;
        let messages = self.begin(NEWSET, F_CREATE);
        set.write(messages, number);
        self
    }

    /// Adds elements: the bytes of keys, and of values if the set is a map. An existing element
    /// with the same value is not an error; one with another value is.
    pub fn add_elements(&mut self, set: &str, elements: &[Element]) -> &mut Self {
        self.elements(NEWSETELEM, F_CREATE, set, elements)
    }

    /// Removes elements; a missing one is an error.
    pub fn delete_elements(&mut self, set: &str, elements: &[Element]) -> &mut Self {
        self.elements(DELSETELEM, 0, set, elements)
    }

    fn elements(&mut self, kind: u16, flags: u16, set: &str, elements: &[Element]) -> &mut Self {
        // A list is one attribute, which holds at most 64 KiB.
        for chunk in elements.chunks(400) {
            self.begin(kind, flags).text(2, set).nest(3, |list| {
                for (key, value) in chunk {
                    set::write_element(list, key, value);
                }
            });
        }
        self
    }

    fn begin(&mut self, kind: u16, flags: u16) -> &mut Messages {
        // The first attribute of each kind of change is the table's name.
        self.messages
            .begin(
                SUBSYSTEM << 8 | kind,
                REQUEST | flags,
                &header(self.family.number(), 0),
            )
            .text(1, self.table)
    }

    /// Applies the changes.
    ///
    /// # Errors
    /// The first rejected change. None was applied then.
    pub fn commit(self, what: impl FnOnce() -> String) -> Result<(), NetlinkError> {
        Connection::open()?.commit(self, what)
    }

    fn send(
        mut self,
        socket: &mut Socket,
        what: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        // The kernel acknowledges errors, and the last change: if that succeeds and no error
        // preceded it, all are in force.
        let last = self.messages.acknowledge_last();
        self.messages
            .begin(BATCH_END, REQUEST, &header(0, SUBSYSTEM));
        socket.send_until(&self.messages, last, what)
    }
}

/// A reusable socket for nftables. When a process closes one, the kernel waits until everything
/// that earlier changes removed is freed, which takes some 10 ms.
///
/// It stays in the network namespace in which it was opened. After an error it can't be used any
/// more.
#[derive(Debug)]
pub struct Connection(Socket);

impl Connection {
    /// Opens one in the network namespace of this thread.
    ///
    /// # Errors
    /// The kernel has no nftables, or the process lacks privileges.
    pub fn open() -> Result<Self, NetlinkError> {
        Socket::netfilter().map(Self)
    }

    /// Applies changes, as [`Batch::commit`] does.
    ///
    /// # Errors
    /// The first rejected change. None was applied then.
    pub fn commit(
        &mut self,
        batch: Batch<'_>,
        what: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        batch.send(&mut self.0, what)
    }
}

/// Whether a table exists.
///
/// # Errors
/// The kernel has no nftables, or the process lacks privileges.
pub fn has_table(family: TableFamily, table: &str) -> Result<bool, NetlinkError> {
    let mut request = Messages::default();
    request
        .begin(
            SUBSYSTEM << 8 | GETTABLE,
            REQUEST,
            &header(family.number(), 0),
        )
        .text(1, table);
    let asked = Socket::netfilter()?.get(&request, "look for an nftables table", |_| true);
    match asked {
        Err(error) if error.is_missing() => Ok(false),
        other => other,
    }
}

/// `struct nfgenmsg`
fn header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}
