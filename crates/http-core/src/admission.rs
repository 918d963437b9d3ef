//! Admission of connections to a listener: a share for each source, and slots reserved for
//! authenticated peers. Decides only; [`connections`](crate::connections) acts.
//!
//! A new connection is refused only if every connection that it competes with is authenticated.
//! Otherwise it replaces the unauthenticated connection that has made no progress for longest: a
//! client that is about to show a certificate makes progress within milliseconds, a silent one
//! never does.
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

/// Origin of a connection: the unit of shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PeerSource {
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

impl PeerSource {
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

/// The authentication of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerTrust {
    /// Nothing yet.
    Unauthenticated,
    /// Authenticated by a certificate, an accepted token, or the kernel.
    Authenticated,
    /// Root, or the user of the agent: only the total counts.
    Root,
}

/// Connection limits of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// All but sessions.
    pub total: usize,
    /// Unauthenticated peers: the rest of the total is reserved for authenticated peers.
    pub unauthenticated: usize,
    /// Unauthenticated peers from one source.
    pub unauthenticated_per_source: usize,
    /// Authenticated peers: the rest of the total is for peers that are about to authenticate.
    pub authenticated: usize,
    /// Authenticated peers from one source.
    pub authenticated_per_source: usize,
    /// Sessions, of any source: those of a cluster all come from its API server.
    pub sessions: usize,
}

/// Identifies a connection of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionId(u64);

/// The limit that a connection exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The share of its source.
    Source,
    /// The limit of all unauthenticated peers, all authenticated peers, or all connections.
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
    source: PeerSource,
    trust: PeerTrust,
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
    pub(crate) fn open(&mut self, now: Instant, source: PeerSource, trust: PeerTrust) -> Admission {
        let limit = self.limit(source, trust);
        let victim = match limit {
            None => None,
            Some(Limit::Source) if trust == PeerTrust::Unauthenticated => {
                self.stalest(Some(source))
            }
            // A peer of the unix socket does not replace another one of the same user.
            Some(Limit::Source) => None,
            Some(Limit::Total) => self.stalest(None),
        };
        match (limit, victim) {
            (None, _) => Admission::Kept(self.insert(now, source, trust)),
            (Some(limit), Some(victim)) => {
                self.entries.remove(&victim);
                Admission::InPlaceOf(self.insert(now, source, trust), victim, limit)
            }
            (Some(limit), None) => Admission::Refused(limit),
        }
    }

    /// The limit that one more connection would exceed.
    fn limit(&self, source: PeerSource, trust: PeerTrust) -> Option<Limit> {
        let limits = &self.limits;
        let (all, of_source) = match trust {
            PeerTrust::Unauthenticated => {
                (limits.unauthenticated, limits.unauthenticated_per_source)
            }
            PeerTrust::Authenticated => (limits.authenticated, limits.authenticated_per_source),
            PeerTrust::Root => (limits.total, usize::MAX),
        };
        if self.count(Some(source), trust) >= of_source {
            return Some(Limit::Source);
        }
        let full = self.count(None, trust) >= all || self.without_session() >= limits.total;
        full.then_some(Limit::Total)
    }

    fn count(&self, source: Option<PeerSource>, trust: PeerTrust) -> usize {
        let counts = |entry: &&AdmittedConnection| {
            !entry.in_session
                && entry.trust == trust
                && source.is_none_or(|source| entry.source == source)
        };
        self.entries.values().filter(counts).count()
    }

    fn without_session(&self) -> usize {
        let entries = self.entries.values();
        entries.filter(|entry| !entry.in_session).count()
    }

    /// The unauthenticated connection to close first: of that source, or of the source with the
    /// most of them, the one that has made no progress for longest.
    fn stalest(&self, source: Option<PeerSource>) -> Option<ConnectionId> {
        let unauthenticated = || {
            let entries = self.entries.iter();
            entries
                .filter(|(_, entry)| entry.trust == PeerTrust::Unauthenticated && !entry.in_session)
        };
        let mut counts: BTreeMap<PeerSource, usize> = BTreeMap::new();
        for (_, entry) in unauthenticated() {
            *counts.entry(entry.source).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or_default();
        let competes = |entry: &AdmittedConnection| match source {
            Some(source) => entry.source == source,
            None => counts.get(&entry.source) == Some(&most),
        };
        unauthenticated()
            .filter(|(_, entry)| competes(entry))
            .min_by_key(|(id, entry)| (entry.progress, **id))
            .map(|(id, _)| *id)
    }

    fn insert(&mut self, now: Instant, source: PeerSource, trust: PeerTrust) -> ConnectionId {
        let id = ConnectionId(self.next);
        self.next += 1;
        let entry = AdmittedConnection {
            source,
            trust,
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

    /// A peer has authenticated. Beyond the limits of authenticated peers it keeps counting as
    /// unauthenticated.
    pub(crate) fn prove(&mut self, id: ConnectionId) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let (source, trust) = (entry.source, entry.trust);
        let limits = &self.limits;
        let has_room = self.count(None, PeerTrust::Authenticated) < limits.authenticated
            && self.count(Some(source), PeerTrust::Authenticated) < limits.authenticated_per_source;
        if trust == PeerTrust::Unauthenticated
            && has_room
            && let Some(entry) = self.entries.get_mut(&id)
        {
            entry.trust = PeerTrust::Authenticated;
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

    /// Removes the unauthenticated connection to close first, to free resources other than slots.
    pub(crate) fn shed(&mut self) -> Option<ConnectionId> {
        let victim = self.stalest(None)?;
        self.entries.remove(&victim);
        Some(victim)
    }

    /// A connection has ended. Unknown connections are ignored.
    pub(crate) fn close(&mut self, id: ConnectionId) {
        self.entries.remove(&id);
    }

    /// Whether the connection is still open.
    pub(crate) fn has(&self, id: ConnectionId) -> bool {
        self.entries.contains_key(&id)
    }
}
