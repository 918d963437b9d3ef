//! Lists and watches one collection, forever.

mod event;
mod lines;
mod list;
mod reopen;
mod run;
mod target;
mod unreadable;

use std::{
    convert::Infallible, fmt, future::poll_fn, pin::Pin, sync::Arc, task::Poll, time::Duration,
};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub(crate) use self::event::meta;
pub use self::{reopen::WatchReopener, target::WatchTarget};
use crate::client::Client;

/// A change in a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<T> {
    /// The complete state: what is not in it is gone. Comes first, and again whenever the server
    /// could not replay what was missed.
    Listed(Vec<T>),
    /// An object was created or changed.
    Applied(T),
    /// An object was deleted; this was its last state.
    Deleted(T),
}

impl Client {
    /// Follows a collection. Sends nothing before [`Watcher::next`] is called.
    pub fn watch<T: DeserializeOwned + Send + 'static>(&self, what: WatchTarget) -> Watcher<T> {
        Watcher::new(self.clone(), what)
    }
}

/// Lists and watches a collection, and retries forever.
///
/// The first list is as fresh as the server can make it, streamed where the server offers that, in
/// pages otherwise. Then it watches from the last observed version, across timeouts, lost connections
/// and restarts of the server; it lists again only when that version is too old (410 Gone).
/// After failures it waits 0.8 s to 30 s with jitter, or as long as `Retry-After` specifies.
///
/// An object that can't be read as a `T` is skipped, and a field of it that can't be read counts as
/// absent: [`Client::unreadable`] lists both.
pub struct Watcher<T> {
    state: WatcherState<T>,
    slot: ChangeSlot<T>,
    problem: watch::Receiver<Option<String>>,
}

enum WatcherState<T> {
    /// `next` was not called yet.
    Ready(Box<run::WatchLoop<T>>),
    /// Runs only while `next` is awaited.
    Running(Pin<Box<dyn Future<Output = Infallible> + Send>>),
    /// Between the two.
    Starting,
}

/// Minimum duration of one watch, the same as the kubelet's. The maximum is twice that.
const MIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

impl<T: DeserializeOwned + Send + 'static> Watcher<T> {
    pub(crate) fn new(client: Client, target: WatchTarget) -> Self {
        let (tell, problem) = watch::channel(None);
        let slot = ChangeSlot::default();
        let feed = run::WatchLoop::new(client, target, MIN_TIMEOUT, slot.clone(), tell);
        Self {
            state: WatcherState::Ready(Box::new(feed)),
            slot,
            problem,
        }
    }

    /// Requests that the server ends each watch after `least` to twice that, instead of 5 to 10
    /// minutes: for collections that there are many of. Has no effect after the first
    /// [`next`](Self::next).
    #[must_use]
    pub fn min_timeout(mut self, least: Duration) -> Self {
        if let WatcherState::Ready(feed) = &mut self.state {
            feed.min_timeout = least;
        }
        self
    }

    /// Lets `reopener` open this watch again. Has no effect after the first [`next`](Self::next).
    #[must_use]
    pub fn reopened_by(mut self, reopener: &WatchReopener) -> Self {
        if let WatcherState::Ready(feed) = &mut self.state {
            feed.reopener = Some(reopener.clone());
        }
        self
    }

    /// The next change. May be dropped while waiting: nothing is lost. Work is done only while
    /// a caller waits here.
    pub async fn next(&mut self) -> Change<T> {
        poll_fn(|context| {
            if let WatcherState::Ready(_) = self.state
                && let WatcherState::Ready(feed) =
                    std::mem::replace(&mut self.state, WatcherState::Starting)
            {
                self.state = WatcherState::Running(Box::pin(feed.follow()));
            }
            if let Some(change) = self.slot.take() {
                return Poll::Ready(change);
            }
            if let WatcherState::Running(run) = &mut self.state
                && let Poll::Ready(never) = run.as_mut().poll(context)
            {
                match never {}
            }
            match self.slot.take() {
                Some(change) => Poll::Ready(change),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Why it does not get through at the moment; `None` while it does.
    #[must_use]
    pub fn problem(&self) -> watch::Receiver<Option<String>> {
        self.problem.clone()
    }
}

impl<T> fmt::Debug for Watcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("problem", &*self.problem.borrow())
            .finish_non_exhaustive()
    }
}

/// The slot in which the run puts a change for the waiter: one place, no queue.
struct ChangeSlot<T>(Arc<Mutex<Option<Change<T>>>>);

impl<T> ChangeSlot<T> {
    fn take(&self) -> Option<Change<T>> {
        self.0.lock().take()
    }

    /// Hands over a change and waits until it is taken. It is taken by the task that runs this
    /// future, so no task needs to be woken.
    async fn put(&self, change: Change<T>) {
        *self.0.lock() = Some(change);
        poll_fn(|_| {
            let slot = self.0.lock();
            if slot.is_some() {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }
}

impl<T> Default for ChangeSlot<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for ChangeSlot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests;
