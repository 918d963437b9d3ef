//! Tracks the use of a connection. Idle connections are closed, unauthorized ones
//! soon, and so are those whose peer does not read the response.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::connections::{ConnectionSlot, RefusalReason, SessionPermit};

/// A connection without a request is closed after this time, as in the kubelet.
const IDLE: Duration = Duration::from_secs(90);

/// At this age a connection without an authorized request is closed, whatever is requested on it:
/// it costs memory, and a client that opens hundreds of them must not lock out others.
const UNAUTHORIZED_TIMEOUT: Duration = Duration::from_secs(10);

/// An unauthenticated peer that does not read a response for this time is disconnected.
const STALLED_UNAUTHENTICATED: Duration = Duration::from_secs(60);

/// The same for an authenticated peer: a user may read a log page by page. The kubelet's
/// `streamingConnectionIdleTimeout` has this default.
const STALLED: Duration = Duration::from_secs(4 * 60 * 60);

/// Tracks the use of a connection.
pub struct Activity {
    born: Instant,
    slot: ConnectionSlot,
    /// Requests whose response is in progress.
    open: AtomicUsize,
    /// Those of them that wait for data, not for the peer.
    waiting: AtomicUsize,
    let_in: AtomicBool,
    known: AtomicBool,
    pulled: Mutex<Instant>,
    changed: Notify,
}

/// A request of a connection; ends when dropped.
pub struct OpenRequest {
    activity: Arc<Activity>,
    waits: bool,
}

impl Activity {
    /// A new connection.
    #[must_use]
    pub fn new(slot: ConnectionSlot) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            born: now,
            slot,
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            let_in: AtomicBool::new(false),
            known: AtomicBool::new(false),
            pulled: Mutex::new(now),
            changed: Notify::new(),
        })
    }

    /// A request has arrived.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> OpenRequest {
        self.open.fetch_add(1, Ordering::SeqCst);
        self.progress();
        self.changed.notify_one();
        OpenRequest {
            activity: Arc::clone(self),
            waits: false,
        }
    }

    /// A request was authorized.
    pub fn let_in(&self) {
        self.let_in.store(true, Ordering::SeqCst);
    }

    /// The peer is authenticated, and is one for whom slots are reserved.
    pub fn prove(&self) {
        if !self.known.swap(true, Ordering::SeqCst) {
            self.slot.prove();
        }
    }

    /// The peer made progress.
    pub fn progress(&self) {
        *self.pulled.lock() = Instant::now();
        if !self.known.load(Ordering::SeqCst) {
            self.slot.progress();
        }
    }

    /// A slot for a session of the listener; `None` if all are taken.
    #[must_use]
    pub fn begin_session(&self) -> Option<SessionPermit> {
        self.slot.begin_session()
    }

    /// Counts a connection that is closed for that reason.
    pub fn refused(&self, reason: RefusalReason) {
        self.slot.refused(reason);
    }

    /// Returns when the connection has been idle for too long; with a reason if the peer caused it.
    pub async fn idle(&self) -> Option<RefusalReason> {
        loop {
            let changed = self.changed.notified();
            let open = self.open.load(Ordering::SeqCst) > 0;
            if open && self.waiting.load(Ordering::SeqCst) > 0 {
                changed.await;
                continue;
            }
            let let_in = self.let_in.load(Ordering::SeqCst);
            let (until, reason) = match (open, let_in) {
                (true, _) => (self.stalls_at(), Some(RefusalReason::Stalled)),
                (false, true) => (Instant::now() + IDLE, None),
                (false, false) => (
                    self.born + UNAUTHORIZED_TIMEOUT,
                    Some(RefusalReason::Silent),
                ),
            };
            if timeout_at(until, changed).await.is_err() {
                // Progress of the response since then did not notify this task.
                if open && self.stalls_at() > until {
                    continue;
                }
                return reason;
            }
        }
    }

    fn stalls_at(&self) -> Instant {
        let patience = match self.known.load(Ordering::SeqCst) {
            true => STALLED,
            false => STALLED_UNAUTHENTICATED,
        };
        *self.pulled.lock() + patience
    }
}

impl OpenRequest {
    /// The next part of the response was polled; `waits`: it is not available yet.
    pub(crate) fn pulled(&mut self, waits: bool) {
        self.activity.progress();
        if self.waits != waits {
            self.waits = waits;
            match waits {
                true => self.activity.waiting.fetch_add(1, Ordering::SeqCst),
                false => self.activity.waiting.fetch_sub(1, Ordering::SeqCst),
            };
            self.activity.changed.notify_one();
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if self.waits {
            self.activity.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        self.activity.open.fetch_sub(1, Ordering::SeqCst);
        self.activity.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
