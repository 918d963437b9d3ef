//! The rules that a packet meets.
//!
//! The kernel reports each step of packets that a rule with [`super::Expression::Trace`] marked, to
//! all who listen.

use std::os::fd::{AsFd, BorrowedFd};

use crate::{
    datagram::set_option,
    netlink::{NetlinkError, message, socket::Socket},
};

use super::{Connection, GETRULE, RuleHandle, SUBSYSTEM, TableFamily, header, read::part};

/// The multicast group of traces (`NFNLGRP_NFTRACE`).
const GROUP: u32 = 9;
/// `NFT_MSG_TRACE`
const STEP: u16 = 17;
/// `NFT_TRACETYPE_POLICY`
const POLICY: u32 = 1;
/// `NF_DROP`
const DROP: u32 = 0;
/// `NF_ACCEPT`
const ACCEPT: u32 = 1;

/// What a step led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceVerdict {
    /// The packet is dropped.
    Drop,
    /// It is accepted at this hook of this table.
    Accept,
    /// It goes on.
    Other,
}

/// A packet met a rule, or the end of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceStep {
    /// The number of the packet; the kernel uses numbers again.
    pub id: u32,
    /// The table's family, if it is one of those known here.
    pub family: Option<TableFamily>,
    /// The table.
    pub table: String,
    /// The chain.
    pub chain: String,
    /// The rule; `None` at the end of a chain.
    pub rule: Option<RuleHandle>,
    /// The verdict, or the chain's policy.
    pub verdict: TraceVerdict,
}

/// Receives what the kernel reports. It stays in the network namespace in which it was opened.
#[derive(Debug)]
pub struct RuleTrace(Socket);

impl RuleTrace {
    /// Opens one in the network namespace of this thread.
    ///
    /// # Errors
    /// The kernel has no nftables, or the process lacks privileges.
    pub fn open() -> Result<Self, NetlinkError> {
        let socket = Socket::netfilter()?;
        let joined = set_option(
            socket.as_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_ADD_MEMBERSHIP,
            &GROUP.to_ne_bytes(),
        );
        joined.map_err(NetlinkError::Open)?;
        Ok(Self(socket))
    }

    /// The next steps, without waiting: none if nothing was reported.
    ///
    /// # Errors
    /// Reports were lost because they were not read in time, or the socket failed.
    pub fn steps(&mut self) -> Result<Vec<TraceStep>, NetlinkError> {
        let mut steps = Vec::new();
        self.0.read_now(|answer| {
            if answer.kind == SUBSYSTEM << 8 | STEP {
                steps.extend(step(answer.payload));
            }
        })?;
        Ok(steps)
    }
}

impl AsFd for RuleTrace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn wide(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

fn step(item: &[u8]) -> Option<TraceStep> {
    let text = |kind| part(item, kind).map(|bytes| message::text(&bytes));
    let families = [
        TableFamily::Inet,
        TableFamily::Ip,
        TableFamily::Ip6,
        TableFamily::Bridge,
    ];
    let code = match number(&part(item, 4)?)? {
        POLICY => number(&part(item, 16)?)?,
        _ => match part(item, 5) {
            Some(verdict) => number(message::attribute(&verdict, 1)?)?,
            None => u32::MAX,
        },
    };
    Some(TraceStep {
        id: number(&part(item, 6)?)?,
        family: families
            .into_iter()
            .find(|family| item.first() == Some(&family.number())),
        table: text(1)?,
        chain: text(2)?,
        rule: part(item, 3)
            .and_then(|handle| wide(&handle))
            .map(RuleHandle),
        verdict: match code {
            DROP => TraceVerdict::Drop,
            ACCEPT => TraceVerdict::Accept,
            _ => TraceVerdict::Other,
        },
    })
}

/// What people know a rule by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleInfo {
    /// Its place in its chain, from 1.
    pub place: usize,
    /// Its comment.
    pub comment: Option<String>,
    /// The packets that it counted, if it counts.
    pub packets: Option<u64>,
}

impl Connection {
    /// A rule of a chain, if it is there.
    ///
    /// # Errors
    /// There is no such chain, or the process lacks privileges.
    pub fn rule(
        &mut self,
        family: TableFamily,
        table: &str,
        chain: &str,
        rule: RuleHandle,
    ) -> Result<Option<RuleInfo>, NetlinkError> {
        let items = self.0.list(
            SUBSYSTEM << 8 | GETRULE,
            &header(family.number(), 0),
            |messages| {
                messages.text(1, table).text(2, chain);
            },
            "list the rules of a chain",
        )?;
        // Older kernels also list the rules of other chains.
        let is = |item: &[u8], kind, name: &str| {
            part(item, kind).is_some_and(|found| message::text(&found) == name)
        };
        let mut here = items
            .iter()
            .filter(|item| is(item, 1, table) && is(item, 2, chain))
            .enumerate();
        Ok(here
            .find(|(_, item)| part(item, 3).and_then(|handle| wide(&handle)) == Some(rule.0))
            .map(|(before, item)| RuleInfo {
                place: before + 1,
                comment: part(item, 7).and_then(|data| comment(&data)),
                packets: part(item, 4).and_then(|list| packets(&list)),
            }))
    }
}

/// The comment among the data of a rule: kind, length and bytes of each.
fn comment(mut data: &[u8]) -> Option<String> {
    while let Some(([kind, length], rest)) = data.split_first_chunk() {
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        if *kind == 0 {
            return Some(message::text(value));
        }
        data = rest;
    }
    None
}

/// The packets that a counter among the expressions of a rule has.
fn packets(list: &[u8]) -> Option<u64> {
    message::attributes(list)
        .find(|(_, expression)| {
            message::attribute(expression, 1).is_some_and(|name| message::text(name) == "counter")
        })
        .and_then(|(_, expression)| {
            wide(message::attribute(message::attribute(expression, 2)?, 2)?)
        })
}
