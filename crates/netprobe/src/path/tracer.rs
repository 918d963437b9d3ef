//! Follows packets between two addresses through the rules of nftables in a network namespace, also
//! those that `iptables-nft` made.
//!
//! For that a table of its own marks the packets. The kernel removes it with its socket, so nothing
//! stays when this process dies. Kernels before 5.12 have no such tables, and nothing is followed.

use std::{
    net::IpAddr,
    os::fd::{AsFd, BorrowedFd},
};

use rubelet_host::{
    netlink::NetlinkError,
    nft::{
        Batch, ChainKind, Connection, Expression as E, Family, Hook, RuleTrace, TableFamily,
        TraceStep,
    },
};

/// Before all that others do: connections are not even tracked yet.
const FIRST: i32 = -400;

/// A rule, or the policy of a chain, that dropped a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedBy {
    /// Its chain, as `nft` writes it: `ip filter FORWARD`.
    pub chain: String,
    /// The place of the rule in the chain, from 1; `None` for the policy.
    pub rule: Option<usize>,
    /// The comment of the rule.
    pub comment: Option<String>,
    /// The packets that the rule counted, if it counts.
    pub packets: Option<u64>,
}

/// Follows packets.
#[derive(Debug)]
pub struct Tracer {
    trace: RuleTrace,
    /// Owns the table.
    connection: Connection,
}

impl Tracer {
    /// Begins to follow the echo requests and replies between two addresses, in the network namespace of
    /// this thread.
    ///
    /// # Errors
    /// The kernel has no nftables or no tables that belong to a socket, or the process lacks privileges.
    pub fn start(one: IpAddr, other: IpAddr) -> Result<Self, NetlinkError> {
        let trace = RuleTrace::open()?;
        let mut connection = Connection::open()?;
        let table = format!("rubelet-net-path-{}", std::process::id());
        let mut batch = Batch::new(TableFamily::Inet, &table);
        batch
            .add_own_table()
            .add_chain("prerouting", ChainKind::Filter(Hook::Prerouting, FIRST))
            .add_chain("output", ChainKind::Filter(Hook::Output, FIRST));
        let whole = if one.is_ipv4() { 32 } else { 128 };
        for (from, to) in [(one, other), (other, one)] {
            let rule = [
                E::Is(Family::of(from)),
                E::Source(from, whole, true),
                E::Destination(to, whole, true),
                E::Trace,
            ];
            batch
                .add_rule("prerouting", &rule)
                .add_rule("output", &rule);
        }
        connection.commit(batch, || "follow packets through nftables".to_owned())?;
        Ok(Self { trace, connection })
    }

    /// The rules that have dropped packets since the last call.
    ///
    /// # Errors
    /// Reports of the kernel are lost.
    pub fn dropped(&mut self) -> Result<Vec<DroppedBy>, NetlinkError> {
        let steps = self.trace.steps()?;
        let drops = steps.into_iter().filter(|step| step.drops);
        Ok(drops.map(|step| self.describe(&step)).collect())
    }

    fn describe(&mut self, step: &TraceStep) -> DroppedBy {
        let info = step.rule.and_then(|rule| {
            let found = self.connection.rule(&step.chain, rule);
            // It may be gone by now.
            found.ok().flatten()
        });
        let info = info.unwrap_or_default();
        DroppedBy {
            chain: step.chain.to_string(),
            rule: step.rule.map(|_| info.place),
            comment: info.comment,
            packets: info.packets,
        }
    }
}

impl AsFd for Tracer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.trace.as_fd()
    }
}
