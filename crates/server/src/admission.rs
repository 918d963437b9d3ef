//! Which connections a listener keeps: a share for each source, and slots in reserve for peers that
//! have shown credentials. Decides only; [`connections`](crate::connections) acts.
//!
//! A new connection is refused only if every connection that it competes with has proved itself.
//! Otherwise it takes the place of the stranger that has made no progress for longest: a client that
//! is about to show a certificate makes progress within milliseconds, a silent one never does.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use tokio::time::Instant;

/// Where a connection comes from, as far as shares go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// This machine: any process can take any address of 127.0.0.0/8.
    Loopback,
    /// One address of IPv4.
    V4(Ipv4Addr),
    /// The first 64 bits of an address of IPv6: one host has all of them.
    V6(u64),
    /// A user of this machine.
    Uid(u32),
    /// The kernel did not say.
    Unknown,
}

impl Source {
    /// The source of an address. One of IPv4 that is written in IPv6 is one of IPv4.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Loopback,
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                Self::V6(u64::try_from(u128::from(address) >> 64).unwrap_or_default())
            }
        }
    }
}

/// What a peer has proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing yet.
    Stranger,
    /// Who it is: by a certificate, a token that was accepted, or the kernel.
    Known,
    /// That it is root, or the user of the agent: only the total counts.
    Root,
}

/// How many connections a listener keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdmissionLimits {
    /// All of them.
    pub(crate) total: usize,
    /// Those of strangers: the rest of the total is in reserve for others.
    pub(crate) strangers: usize,
    /// Those of strangers from one source.
    pub(crate) strangers_per_source: usize,
    /// Those of known peers: the rest of the total is for those that are about to prove themselves.
    pub(crate) known: usize,
    /// Those of known peers from one source.
    pub(crate) known_per_source: usize,
}

/// A connection of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionId(u64);

/// Which limit a connection ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The share of its source.
    Source,
    /// That of all strangers, all known peers, or all connections.
    Total,
}

/// What becomes of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is kept.
    Kept(ConnectionId),
    /// It is kept, and another one is closed for it.
    InPlaceOf(ConnectionId, ConnectionId, Limit),
    /// It is closed.
    Refused(Limit),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    source: Source,
    standing: Standing,
    progress: Instant,
}

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct AdmissionTable {
    limits: AdmissionLimits,
    next: u64,
    entries: BTreeMap<ConnectionId, Entry>,
}

impl AdmissionTable {
    /// A table without connections.
    pub(crate) fn new(limits: AdmissionLimits) -> Self {
        Self {
            limits,
            next: 0,
            entries: BTreeMap::new(),
        }
    }

    /// Decides over a new connection.
    pub(crate) fn open(&mut self, now: Instant, source: Source, standing: Standing) -> Admission {
        let limit = self.limit(source, standing);
        let victim = match limit {
            None => None,
            Some(Limit::Source) if standing == Standing::Stranger => self.stalest(Some(source)),
            // A peer of the kernel is not let in at the cost of another one of the same user.
            Some(Limit::Source) => None,
            Some(Limit::Total) => self.stalest(None),
        };
        match (limit, victim) {
            (None, _) => Admission::Kept(self.insert(now, source, standing)),
            (Some(limit), Some(victim)) => {
                self.entries.remove(&victim);
                Admission::InPlaceOf(self.insert(now, source, standing), victim, limit)
            }
            (Some(limit), None) => Admission::Refused(limit),
        }
    }

    /// The limit that one more connection would exceed.
    fn limit(&self, source: Source, standing: Standing) -> Option<Limit> {
        let limits = &self.limits;
        let (all, of_source) = match standing {
            Standing::Stranger => (limits.strangers, limits.strangers_per_source),
            Standing::Known => (limits.known, limits.known_per_source),
            Standing::Root => (limits.total, usize::MAX),
        };
        if self.count(Some(source), standing) >= of_source {
            return Some(Limit::Source);
        }
        let full = self.count(None, standing) >= all || self.entries.len() >= limits.total;
        full.then_some(Limit::Total)
    }

    fn count(&self, source: Option<Source>, standing: Standing) -> usize {
        let counts = |entry: &&Entry| {
            entry.standing == standing && source.is_none_or(|source| entry.source == source)
        };
        self.entries.values().filter(counts).count()
    }

    /// The stranger that goes first: of that source, or of the source with most of them, the one
    /// that has made no progress for longest.
    fn stalest(&self, source: Option<Source>) -> Option<ConnectionId> {
        let strangers = || {
            let strangers = self.entries.iter();
            strangers.filter(|(_, entry)| entry.standing == Standing::Stranger)
        };
        let mut counts: BTreeMap<Source, usize> = BTreeMap::new();
        for (_, entry) in strangers() {
            *counts.entry(entry.source).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or_default();
        let competes = |entry: &Entry| match source {
            Some(source) => entry.source == source,
            None => counts.get(&entry.source) == Some(&most),
        };
        strangers()
            .filter(|(_, entry)| competes(entry))
            .min_by_key(|(id, entry)| (entry.progress, **id))
            .map(|(id, _)| *id)
    }

    fn insert(&mut self, now: Instant, source: Source, standing: Standing) -> ConnectionId {
        let id = ConnectionId(self.next);
        self.next += 1;
        let entry = Entry {
            source,
            standing,
            progress: now,
        };
        self.entries.insert(id, entry);
        id
    }

    /// The peer did something: sent its first byte, finished its handshake, took a part of an answer.
    pub(crate) fn progress(&mut self, now: Instant, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.progress = now;
        }
    }

    /// A stranger has shown who it is. Beyond the limits of known peers it stays a stranger.
    pub(crate) fn prove(&mut self, id: ConnectionId) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let (source, standing) = (entry.source, entry.standing);
        let limits = &self.limits;
        let has_room = self.count(None, Standing::Known) < limits.known
            && self.count(Some(source), Standing::Known) < limits.known_per_source;
        if standing == Standing::Stranger
            && has_room
            && let Some(entry) = self.entries.get_mut(&id)
        {
            entry.standing = Standing::Known;
        }
    }

    /// Takes the stranger that goes first, for want of something else than slots.
    pub(crate) fn shed(&mut self) -> Option<ConnectionId> {
        let victim = self.stalest(None)?;
        self.entries.remove(&victim);
        Some(victim)
    }

    /// A connection has ended. One that is not there any more is no matter.
    pub(crate) fn close(&mut self, id: ConnectionId) {
        self.entries.remove(&id);
    }

    /// Whether the connection is still there.
    pub(crate) fn has(&self, id: ConnectionId) -> bool {
        self.entries.contains_key(&id)
    }
}
