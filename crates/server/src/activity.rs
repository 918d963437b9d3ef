//! Whether a connection is in use, and who uses it: idle ones are closed, those of strangers soon,
//! and so are those whose peer takes nothing of its answers.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::connections::{RefusalReason, Slot};

/// A connection without a request is closed after so long. As the kubelet has it.
const IDLE: Duration = Duration::from_secs(90);

/// So long after it was made, a connection on which nobody was let in yet is closed, whatever is
/// asked on it: it costs memory, and whoever opens hundreds of them shall not keep others away.
pub(crate) const STRANGER: Duration = Duration::from_secs(10);

/// A peer that takes nothing of an answer for so long is gone, if nobody knows who it is.
const STALLED_STRANGER: Duration = Duration::from_secs(60);

/// The same for a peer that has shown who it is: somebody may read a log page by page. The kubelet's
/// `streamingConnectionIdleTimeout` has this default.
const STALLED: Duration = Duration::from_secs(4 * 60 * 60);

/// How a connection is used.
pub(crate) struct Activity {
    born: Instant,
    slot: Slot,
    /// Requests whose answers are under way.
    open: AtomicUsize,
    /// Those of them that wait for something to tell, and not for the peer.
    waiting: AtomicUsize,
    let_in: AtomicBool,
    known: AtomicBool,
    pulled: Mutex<Instant>,
    changed: Notify,
}

/// A request of a connection, until it is dropped.
pub(crate) struct Open {
    activity: Arc<Activity>,
    waits: bool,
}

impl Activity {
    /// A new connection.
    pub(crate) fn new(slot: Slot) -> Arc<Self> {
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

    /// A request came.
    pub(crate) fn begin(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::SeqCst);
        self.progress();
        self.changed.notify_one();
        Open {
            activity: Arc::clone(self),
            waits: false,
        }
    }

    /// Somebody was let in.
    pub(crate) fn let_in(&self) {
        self.let_in.store(true, Ordering::SeqCst);
    }

    /// The peer has shown who it is, and is somebody to whom slots are kept.
    pub(crate) fn prove(&self) {
        if !self.known.swap(true, Ordering::SeqCst) {
            self.slot.prove();
        }
    }

    /// The peer did something.
    pub(crate) fn progress(&self) {
        *self.pulled.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if !self.known.load(Ordering::SeqCst) {
            self.slot.progress();
        }
    }

    /// Counts a connection that is closed for that reason.
    pub(crate) fn refused(&self, reason: RefusalReason) {
        self.slot.refused(reason);
    }

    /// Returns when the connection has been idle for too long; with a reason if that is the peer's
    /// doing.
    pub(crate) async fn idle(&self) -> Option<RefusalReason> {
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
                (false, false) => (self.born + STRANGER, Some(RefusalReason::Silent)),
            };
            if timeout_at(until, changed).await.is_err() {
                // A part of an answer that was taken meanwhile woke nobody.
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
            false => STALLED_STRANGER,
        };
        *self.pulled.lock().unwrap_or_else(PoisonError::into_inner) + patience
    }
}

impl Open {
    /// The next part of the answer was asked for; `waits` says that there is none yet.
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

impl Drop for Open {
    fn drop(&mut self) {
        if self.waits {
            self.activity.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        self.activity.open.fetch_sub(1, Ordering::SeqCst);
        self.activity.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        connections::{Connections, SECURE},
        peer::Peer,
    };

    fn activity() -> Arc<Activity> {
        let connections = Connections::new("readwrite", SECURE, Arc::new(()));
        Activity::new(connections.open(&Peer::STRANGER).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_are_given_ten_seconds_and_others_ninety() {
        let began = Instant::now();
        let activity = activity();
        assert_eq!(activity.idle().await, Some(RefusalReason::Silent));
        assert_eq!(began.elapsed().as_secs(), 10);
        activity.let_in();
        assert_eq!(activity.idle().await, None);
        assert_eq!(began.elapsed().as_secs(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_ends_while_an_answer_waits_for_something_to_tell() {
        let activity = activity();
        let mut one = activity.begin();
        one.pulled(true);
        let idle = tokio::spawn({
            let activity = Arc::clone(&activity);
            async move {
                activity.idle().await;
                Instant::now()
            }
        });
        tokio::time::sleep(Duration::from_secs(36_000)).await;
        let mut two = activity.begin();
        two.pulled(true);
        drop(one);
        tokio::time::sleep(Duration::from_secs(36_000)).await;
        activity.let_in();
        let ended = Instant::now();
        drop(two);
        assert_eq!((idle.await.unwrap() - ended).as_secs(), 90);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up_and_one_that_is_known_later() {
        for (known, seconds) in [(false, 60), (true, 4 * 3600)] {
            let activity = activity();
            activity.let_in();
            if known {
                activity.prove();
            }
            let mut open = activity.begin();
            tokio::time::sleep(Duration::from_secs(50)).await;
            open.pulled(false);
            let began = Instant::now();
            assert_eq!(activity.idle().await, Some(RefusalReason::Stalled));
            assert_eq!(began.elapsed().as_secs(), seconds);
        }
    }
}
