//! The connections of a listener: decided by [`admission`](crate::admission), closed here.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::{task::AbortHandle, time::Instant};

use crate::{
    admission::{Admission, AdmissionLimits, AdmissionTable, ConnectionId, Limit, PeerTrust},
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
    /// No request was authorized on it in time.
    Silent,
    /// The peer did not read a response for too long.
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

/// Is told of connections that were not kept, and of sessions. Called from the tasks of connections:
/// must not wait.
pub trait ConnectionObserver: Send + Sync + 'static {
    /// A connection was closed. `listener` is `readwrite`, `readonly`, `health` or `socket`.
    fn refused(&self, listener: &'static str, reason: RefusalReason);
    /// A session has ended, or was refused, and everything that it held is freed.
    fn session_ended(&self);
}

/// Counts nothing.
impl ConnectionObserver for () {
    fn refused(&self, _: &'static str, _: RefusalReason) {}
    fn session_ended(&self) {}
}

/// The connections of one listener.
pub struct Connections {
    listener: &'static str,
    observer: Arc<dyn ConnectionObserver>,
    state: Mutex<ConnectionTable>,
}

/// Under one lock: a task whose connection is not in `table` any more must not be in `tasks`, as its
/// handle would never be removed.
struct ConnectionTable {
    table: AdmissionTable,
    tasks: HashMap<ConnectionId, AbortHandle>,
}

impl Connections {
    /// No connections yet. `listener` is its name in metrics: see [`ConnectionObserver::refused`].
    #[must_use]
    pub fn new(
        listener: &'static str,
        limits: AdmissionLimits,
        observer: Arc<dyn ConnectionObserver>,
    ) -> Arc<Self> {
        Arc::new(Self {
            listener,
            observer,
            state: Mutex::new(ConnectionTable {
                table: AdmissionTable::new(limits),
                tasks: HashMap::new(),
            }),
        })
    }

    /// A slot for a new connection; `None` closes it. Another connection may be closed for it.
    pub(crate) fn open(self: &Arc<Self>, peer: &Peer) -> Option<ConnectionSlot> {
        let admission = self
            .state()
            .table
            .open(Instant::now(), peer.source(), peer.trust());
        let reason = |limit| match limit {
            Limit::Source => RefusalReason::Source,
            Limit::Total => RefusalReason::Total,
        };
        let id = match admission {
            Admission::Kept(id) => id,
            Admission::InPlaceOf(id, victim, limit) => {
                // The victim has lost its entry already, so its slot frees nothing when it is dropped.
                self.end(victim, reason(limit));
                id
            }
            Admission::Refused(limit) => {
                self.refused(reason(limit));
                return None;
            }
        };
        Some(ConnectionSlot {
            id,
            connections: Arc::clone(self),
        })
    }

    /// The task that serves the connection of a slot, so that it can be ended.
    pub(crate) fn served_by(&self, id: ConnectionId, task: AbortHandle) {
        let mut state = self.state();
        // It may have ended by now, and then nothing would remove its handle.
        if state.table.has(id) {
            state.tasks.insert(id, task);
        }
    }

    /// Closes an unauthenticated connection to free its file descriptor.
    pub(crate) fn shed(&self) {
        let victim = self.state().table.shed();
        if let Some(victim) = victim {
            self.end(victim, RefusalReason::Descriptors);
        }
    }

    fn end(&self, id: ConnectionId, reason: RefusalReason) {
        // Aborted without the lock: the task drops its slot, which takes the lock. Without a handle
        // the connection has just ended by itself.
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
            "Closed a connection over the limit"
        );
        self.observer.refused(self.listener, reason);
    }

    fn state(&self) -> MutexGuard<'_, ConnectionTable> {
        self.state.lock()
    }
}

/// The slot of a connection; freed on drop.
pub struct ConnectionSlot {
    id: ConnectionId,
    connections: Arc<Connections>,
}

impl ConnectionSlot {
    /// Its entry in the table.
    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }

    /// The peer made progress.
    pub(crate) fn progress(&self) {
        self.connections
            .state()
            .table
            .progress(Instant::now(), self.id);
    }

    /// The peer has authenticated.
    pub(crate) fn prove(&self) {
        self.connections.state().table.prove(self.id);
    }

    /// The connection is closed for that reason.
    pub(crate) fn refused(&self, reason: RefusalReason) {
        self.connections.refused(reason);
    }

    /// A slot for a session of the listener; `None` if all are taken.
    pub(crate) fn begin_session(&self) -> Option<SessionPermit> {
        let has_room = self.connections.state().table.begin_session(self.id);
        has_room.then(|| SessionPermit {
            id: self.id,
            connections: Arc::clone(&self.connections),
        })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut state = self.connections.state();
        state.table.close(self.id);
        state.tasks.remove(&self.id);
    }
}

/// The slot of a session; freed on drop.
pub struct SessionPermit {
    id: ConnectionId,
    connections: Arc<Connections>,
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.connections.state().table.end_session(self.id);
        self.connections.observer.session_ended();
    }
}

/// Session limit of a listener: a thousand, and some that begin while others end.
const SESSIONS: usize = 1024;

/// The limits of the secure port. A handshake of the API server takes milliseconds; to block it,
/// more than 128 unauthenticated connections of its source would have to arrive in that time.
pub const SECURE: AdmissionLimits = AdmissionLimits {
    total: 512,
    unauthenticated: 384,
    unauthenticated_per_source: 128,
    authenticated: 448,
    authenticated_per_source: 256,
    sessions: SESSIONS,
};

/// The limits of the ports without authentication: every peer is unauthenticated.
pub const PLAIN: AdmissionLimits = AdmissionLimits {
    total: 128,
    unauthenticated: 128,
    unauthenticated_per_source: 64,
    authenticated: 0,
    authenticated_per_source: 0,
    sessions: 0,
};

/// The limits of the unix socket: the kernel reports who each peer is.
pub const SOCKET: AdmissionLimits = AdmissionLimits {
    total: 128,
    unauthenticated: 16,
    unauthenticated_per_source: 16,
    authenticated: 96,
    authenticated_per_source: 48,
    sessions: SESSIONS,
};

impl Peer {
    fn trust(&self) -> PeerTrust {
        match self.credentials() {
            None => PeerTrust::Unauthenticated,
            Some(_) if self.may_add_containers() => PeerTrust::Root,
            Some(_) => PeerTrust::Authenticated,
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
        assert_eq!(Peer::of(&one).trust(), PeerTrust::Root);
        assert_eq!(Peer::UNAUTHENTICATED.trust(), PeerTrust::Unauthenticated);
        let connections = Connections::new("socket", SOCKET, Arc::new(()));
        let slots: Vec<_> = (0..200)
            .map_while(|_| connections.open(&Peer::of(&one)))
            .collect();
        assert_eq!(slots.len(), SOCKET.total);
    }

    #[tokio::test]
    async fn a_slot_is_free_again_with_its_connection() {
        let connections = Connections::new("health", PLAIN, Arc::new(()));
        let slot = connections.open(&Peer::UNAUTHENTICATED).unwrap();
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
