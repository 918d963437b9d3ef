//! Whether a connection is in use, and who uses it: idle ones are closed, those of strangers soon.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// A connection without a request is closed after so long. As the kubelet has it.
const IDLE: Duration = Duration::from_secs(90);

/// So long after it was made, a connection on which nobody was let in yet is closed, whatever is
/// asked on it: it costs memory, and whoever opens hundreds of them shall not keep others away.
const STRANGER: Duration = Duration::from_secs(10);

/// How a connection is used.
#[derive(Debug)]
pub(super) struct Activity {
    born: Instant,
    open: AtomicUsize,
    known: AtomicBool,
    changed: Notify,
}

/// A request of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Open(Arc<Activity>);

impl Activity {
    /// A new connection.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            born: Instant::now(),
            open: AtomicUsize::new(0),
            known: AtomicBool::new(false),
            changed: Notify::new(),
        })
    }

    /// A request came.
    pub(super) fn begin(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_one();
        Open(Arc::clone(self))
    }

    /// Somebody was let in.
    pub(super) fn let_in(&self) {
        self.known.store(true, Ordering::SeqCst);
    }

    /// Returns when the connection has been idle for too long.
    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.open.load(Ordering::SeqCst) > 0 {
                changed.await;
                continue;
            }
            let until = if self.known.load(Ordering::SeqCst) {
                Instant::now() + IDLE
            } else {
                self.born + STRANGER
            };
            if timeout_at(until, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn strangers_are_given_ten_seconds_and_others_ninety() {
        let began = Instant::now();
        let activity = Activity::new();
        activity.idle().await;
        assert_eq!(began.elapsed().as_secs(), 10);
        activity.let_in();
        activity.idle().await;
        assert_eq!(began.elapsed().as_secs(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_ends_while_a_request_is_under_way() {
        let activity = Activity::new();
        let one = activity.begin();
        let idle = tokio::spawn({
            let activity = Arc::clone(&activity);
            async move {
                activity.idle().await;
                Instant::now()
            }
        });
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let two = activity.begin();
        drop(one);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        activity.let_in();
        let ended = Instant::now();
        drop(two);
        assert_eq!((idle.await.unwrap() - ended).as_secs(), 90);
    }
}
