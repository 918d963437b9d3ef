//! Which connections a listener keeps: a share for each source, and slots reserved for
//! authenticated peers. Decides only; [`connections`](crate::connections) acts.
//!
//! A new connection is refused only if every connection that it competes with is authenticated.
//! Otherwise it replaces the stranger that has made no progress for longest: a client that is about
//! to show a certificate makes progress within milliseconds, a silent one never does.
//!
//! A connection that carries an authorized session (exec, attach, port-forward) counts only against
//! the limit of sessions, and is never closed for another connection.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use tokio::time::Instant;

/// Where a connection comes from: the unit of shares.
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
    /// The source of an address. An IPv4-mapped IPv6 address counts as IPv4.
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
pub(crate) enum PeerTrust {
    /// Nothing yet.
    Stranger,
    /// Who it is: by a certificate, a token that was accepted, or the kernel.
    Known,
    /// That it is root, or the user of the agent: only the total counts.
    Root,
}

/// Connection limits of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdmissionLimits {
    /// All but sessions.
    pub(crate) total: usize,
    /// Strangers: the rest of the total is reserved for authenticated peers.
    pub(crate) strangers: usize,
    /// Strangers from one source.
    pub(crate) strangers_per_source: usize,
    /// Known peers: the rest of the total is for peers that are about to authenticate.
    pub(crate) known: usize,
    /// Known peers from one source.
    pub(crate) known_per_source: usize,
    /// Sessions, of any source: those of a cluster all come from its API server.
    pub(crate) sessions: usize,
}

/// Identifies a connection of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionId(u64);

/// Which limit a connection ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The share of its source.
    Source,
    /// The limit of all strangers, all known peers, or all connections.
    Total,
}

/// The decision about a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is kept.
    Kept(ConnectionId),
    /// It is kept, and another connection is closed for it.
    InPlaceOf(ConnectionId, ConnectionId, Limit),
    /// It is closed.
    Refused(Limit),
}

#[derive(Debug, Clone, Copy)]
struct AdmittedConnection {
    source: Source,
    standing: PeerTrust,
    progress: Instant,
    in_session: bool,
}

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct AdmissionTable {
    limits: AdmissionLimits,
    next: u64,
    entries: BTreeMap<ConnectionId, AdmittedConnection>,
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

    /// Decides about a new connection.
    pub(crate) fn open(&mut self, now: Instant, source: Source, standing: PeerTrust) -> Admission {
        let limit = self.limit(source, standing);
        let victim = match limit {
            None => None,
            Some(Limit::Source) if standing == PeerTrust::Stranger => self.stalest(Some(source)),
            // A peer of the unix socket does not replace another one of the same user.
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
    fn limit(&self, source: Source, standing: PeerTrust) -> Option<Limit> {
        let limits = &self.limits;
        let (all, of_source) = match standing {
            PeerTrust::Stranger => (limits.strangers, limits.strangers_per_source),
            PeerTrust::Known => (limits.known, limits.known_per_source),
            PeerTrust::Root => (limits.total, usize::MAX),
        };
        if self.count(Some(source), standing) >= of_source {
            return Some(Limit::Source);
        }
        let full = self.count(None, standing) >= all || self.without_session() >= limits.total;
        full.then_some(Limit::Total)
    }

    fn count(&self, source: Option<Source>, standing: PeerTrust) -> usize {
        let counts = |entry: &&AdmittedConnection| {
            !entry.in_session
                && entry.standing == standing
                && source.is_none_or(|source| entry.source == source)
        };
        self.entries.values().filter(counts).count()
    }

    fn without_session(&self) -> usize {
        let entries = self.entries.values();
        entries.filter(|entry| !entry.in_session).count()
    }

    /// The stranger to close first: of that source, or of the source with the most strangers, the
    /// one that has made no progress for longest.
    fn stalest(&self, source: Option<Source>) -> Option<ConnectionId> {
        let strangers = || {
            let strangers = self.entries.iter();
            strangers
                .filter(|(_, entry)| entry.standing == PeerTrust::Stranger && !entry.in_session)
        };
        let mut counts: BTreeMap<Source, usize> = BTreeMap::new();
        for (_, entry) in strangers() {
            *counts.entry(entry.source).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or_default();
        let competes = |entry: &AdmittedConnection| match source {
            Some(source) => entry.source == source,
            None => counts.get(&entry.source) == Some(&most),
        };
        strangers()
            .filter(|(_, entry)| competes(entry))
            .min_by_key(|(id, entry)| (entry.progress, **id))
            .map(|(id, _)| *id)
    }

    fn insert(&mut self, now: Instant, source: Source, standing: PeerTrust) -> ConnectionId {
        let id = ConnectionId(self.next);
        self.next += 1;
        let entry = AdmittedConnection {
            source,
            standing,
            progress: now,
            in_session: false,
        };
        self.entries.insert(id, entry);
        id
    }

    /// The peer made progress: sent its first byte, finished its handshake, read a part of a
    /// response.
    pub(crate) fn progress(&mut self, now: Instant, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.progress = now;
        }
    }

    /// A stranger has authenticated. Beyond the limits of known peers it stays a stranger.
    pub(crate) fn prove(&mut self, id: ConnectionId) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let (source, standing) = (entry.source, entry.standing);
        let limits = &self.limits;
        let has_room = self.count(None, PeerTrust::Known) < limits.known
            && self.count(Some(source), PeerTrust::Known) < limits.known_per_source;
        if standing == PeerTrust::Stranger
            && has_room
            && let Some(entry) = self.entries.get_mut(&id)
        {
            entry.standing = PeerTrust::Known;
        }
    }

    /// The connection becomes a session. False if the limit of sessions is reached.
    pub(crate) fn begin_session(&mut self, id: ConnectionId) -> bool {
        let sessions = self.entries.len() - self.without_session();
        match self.entries.get_mut(&id) {
            Some(entry) if sessions < self.limits.sessions => {
                entry.in_session = true;
                true
            }
            _ => false,
        }
    }

    /// The session has ended, or there was none.
    pub(crate) fn end_session(&mut self, id: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.in_session = false;
        }
    }

    /// Removes the stranger to close first, to free resources other than slots.
    pub(crate) fn shed(&mut self) -> Option<ConnectionId> {
        let victim = self.stalest(None)?;
        self.entries.remove(&victim);
        Some(victim)
    }

    /// A connection has ended. Unknown connections are ignored.
    pub(crate) fn close(&mut self, id: ConnectionId) {
        self.entries.remove(&id);
    }

    /// Whether the connection is still there.
    pub(crate) fn has(&self, id: ConnectionId) -> bool {
        self.entries.contains_key(&id)
    }
}
