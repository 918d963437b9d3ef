//! The rules that a packet meets.
//!
//! The kernel reports each step of packets that a rule with [`super::Expression::Trace`] marked, to
//! all who listen.

use std::os::fd::{AsFd, BorrowedFd};

use crate::{
    datagram::set_option,
    netlink::{NetlinkError, message, socket::Socket},
};

use super::{
    ChainName, Connection, NF_DROP, RuleHandle, SUBSYSTEM,
    forward::COMMENT,
    read::{chain_name, handle, number, part, wide_number},
};

/// The multicast group of traces (`NFNLGRP_NFTRACE`).
const GROUP: u32 = 9;
/// `NFT_MSG_TRACE`
const STEP: u16 = 17;
/// `NFT_TRACETYPE_POLICY`
const POLICY: u32 = 1;

/// A packet met a rule, or the end of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceStep {
    /// The chain.
    pub chain: ChainName,
    /// The rule; `None` at the end of a chain.
    pub rule: Option<RuleHandle>,
    /// The rule, or the chain's policy, drops the packet.
    pub drops: bool,
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

fn step(item: &[u8]) -> Option<TraceStep> {
    let verdict = match number(&part(item, 4)?)? {
        POLICY => Some(number(&part(item, 16)?)?),
        _ => match part(item, 5) {
            Some(verdict) => Some(number(message::attribute(&verdict, 1)?)?),
            None => None,
        },
    };
    Some(TraceStep {
        chain: chain_name(item, 2)?,
        rule: handle(item),
        drops: verdict == Some(NF_DROP),
    })
}

/// The identification of a rule for people.
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
        chain: &ChainName,
        rule: RuleHandle,
    ) -> Result<Option<RuleInfo>, NetlinkError> {
        let rules = self.rules(chain)?;
        let mut numbered = (1..).zip(&rules);
        Ok(numbered
            .find(|(_, item)| handle(item) == Some(rule))
            .map(|(place, item)| RuleInfo {
                place,
                comment: part(item, 7).and_then(|data| comment(&data)),
                packets: part(item, 4).and_then(|list| packets(&list)),
            }))
    }
}

/// The comment among the data of a rule: kind, length and bytes of each.
fn comment(mut data: &[u8]) -> Option<String> {
    while let Some(([kind, length], rest)) = data.split_first_chunk() {
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        if *kind == COMMENT {
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
            wide_number(message::attribute(message::attribute(expression, 2)?, 2)?)
        })
}
