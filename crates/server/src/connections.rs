//! The connections of a listener: decided by [`admission`](crate::admission), closed here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{task::AbortHandle, time::Instant};

use crate::{
    admission::{Admission, AdmissionLimits, AdmissionTable, ConnectionId, Limit, Standing},
    peer::Peer,
};

/// Why a listener did not keep a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// Its source had more connections than its share.
    Source,
    /// There were too many connections in all.
    Total,
    /// The process has no file descriptors left.
    Descriptors,
    /// Nobody was let in on it in time.
    Silent,
    /// The peer took nothing of an answer for too long.
    Stalled,
}

impl RefusalReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::Source,
        Self::Total,
        Self::Descriptors,
        Self::Silent,
        Self::Stalled,
    ];

    /// The word in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Total => "total",
            Self::Descriptors => "descriptors",
            Self::Silent => "silent",
            Self::Stalled => "stalled",
        }
    }
}

/// Counts connections that were not kept. Called from the tasks of connections: must not wait.
pub trait ConnectionObserver: Send + Sync + 'static {
    /// A connection was closed. `listener` is `readwrite`, `readonly`, `health` or `socket`.
    fn refused(&self, listener: &'static str, reason: RefusalReason);
}

/// Nobody counts.
impl ConnectionObserver for () {
    fn refused(&self, _: &'static str, _: RefusalReason) {}
}

/// The connections of one listener.
pub(crate) struct Connections {
    listener: &'static str,
    observer: Arc<dyn ConnectionObserver>,
    state: Mutex<State>,
}

struct State {
    table: AdmissionTable,
    tasks: HashMap<ConnectionId, AbortHandle>,
}

impl Connections {
    pub(crate) fn new(
        listener: &'static str,
        limits: AdmissionLimits,
        observer: Arc<dyn ConnectionObserver>,
    ) -> Arc<Self> {
        Arc::new(Self {
            listener,
            observer,
            state: Mutex::new(State {
                table: AdmissionTable::new(limits),
                tasks: HashMap::new(),
            }),
        })
    }

    /// A slot for a new connection; `None` closes it. Another connection may be closed for it.
    pub(crate) fn open(self: &Arc<Self>, peer: &Peer) -> Option<Slot> {
        let admission = self
            .state()
            .table
            .open(Instant::now(), peer.source(), peer.standing());
        let reason = |limit| match limit {
            Limit::Source => RefusalReason::Source,
            Limit::Total => RefusalReason::Total,
        };
        let id = match admission {
            Admission::Kept(id) => id,
            Admission::InPlaceOf(id, victim, limit) => {
                self.end(victim, reason(limit));
                id
            }
            Admission::Refused(limit) => {
                self.refused(reason(limit));
                return None;
            }
        };
        Some(Slot {
            id,
            connections: Arc::clone(self),
        })
    }

    /// The task that serves the connection of a slot, so that it can be ended.
    pub(crate) fn served_by(&self, id: ConnectionId, task: AbortHandle) {
        let mut state = self.state();
        // It may have ended by now, and nobody would take its handle away.
        if state.table.has(id) {
            state.tasks.insert(id, task);
        }
    }

    /// Closes a connection of a stranger to have its file descriptor.
    pub(crate) fn shed(&self) {
        let victim = self.state().table.shed();
        if let Some(victim) = victim {
            self.end(victim, RefusalReason::Descriptors);
        }
    }

    fn end(&self, id: ConnectionId, reason: RefusalReason) {
        let task = self.state().tasks.remove(&id);
        if let Some(task) = task {
            task.abort();
        }
        self.refused(reason);
    }

    fn refused(&self, reason: RefusalReason) {
        tracing::debug!(
            listener = self.listener,
            reason = reason.as_str(),
            "A connection was not kept"
        );
        self.observer.refused(self.listener, reason);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection, until it is dropped.
pub(crate) struct Slot {
    id: ConnectionId,
    connections: Arc<Connections>,
}

impl Slot {
    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    /// The peer did something.
    pub(crate) fn progress(&self) {
        self.connections
            .state()
            .table
            .progress(Instant::now(), self.id);
    }

    /// The peer has shown who it is.
    pub(crate) fn prove(&self) {
        self.connections.state().table.prove(self.id);
    }

    /// The connection is closed for that reason.
    pub(crate) fn refused(&self, reason: RefusalReason) {
        self.connections.refused(reason);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.connections.state();
        state.table.close(self.id);
        state.tasks.remove(&self.id);
    }
}

/// The limits of the secure port. A handshake of the API server takes milliseconds; strangers of its
/// source would have to come faster than 128 in that time to be in its way.
pub(crate) const SECURE: AdmissionLimits = AdmissionLimits {
    total: 512,
    strangers: 384,
    strangers_per_source: 128,
    known: 448,
    known_per_source: 256,
};

/// The limits of the ports without authentication: everybody is a stranger there.
pub(crate) const PLAIN: AdmissionLimits = AdmissionLimits {
    total: 128,
    strangers: 128,
    strangers_per_source: 64,
    known: 0,
    known_per_source: 0,
};

/// The limits of the unix socket: the kernel says who each peer is.
pub(crate) const SOCKET: AdmissionLimits = AdmissionLimits {
    total: 128,
    strangers: 16,
    strangers_per_source: 16,
    known: 96,
    known_per_source: 48,
};

impl Peer {
    fn standing(&self) -> Standing {
        match self.credentials() {
            None => Standing::Stranger,
            Some(_) if self.may_add_containers() => Standing::Root,
            Some(_) => Standing::Known,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn a_user_has_a_share_of_the_socket_and_root_all_of_it() {
        // This process is the agent's own user.
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(Peer::of(&one).standing(), Standing::Root);
        assert_eq!(Peer::STRANGER.standing(), Standing::Stranger);
        let connections = Connections::new("socket", SOCKET, Arc::new(()));
        let slots: Vec<_> = (0..200)
            .map_while(|_| connections.open(&Peer::of(&one)))
            .collect();
        assert_eq!(slots.len(), SOCKET.total);
    }

    #[tokio::test]
    async fn a_slot_is_free_again_with_its_connection() {
        let connections = Connections::new("health", PLAIN, Arc::new(()));
        let slot = connections.open(&Peer::STRANGER).unwrap();
        let id = slot.id();
        drop(slot);
        let task = tokio::spawn(std::future::pending::<()>());
        connections.served_by(id, task.abort_handle());
        let state = connections.state();
        assert!(!state.table.has(id) && state.tasks.is_empty());
        drop(state);
        task.abort();
    }
}
