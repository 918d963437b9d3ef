//! List and watch of one collection, for ever.

mod event;
mod lines;
mod list;
mod run;
mod target;
mod unread;

use std::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub(crate) use self::event::meta;
pub use self::target::WatchTarget;
use crate::client::Client;

/// What happened in a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<T> {
    /// The complete state: what is not in it is gone. Comes first, and again whenever the server
    /// could not tell what was missed.
    Listed(Vec<T>),
    /// An object was created or changed.
    Applied(T),
    /// An object was deleted; this was its last state.
    Deleted(T),
}

/// A list and watch that never gives up.
///
/// The first list is as fresh as the server can make it, streamed where the server offers that, in
/// pages else. Afterwards the watch goes on from the last version that was seen, over ends, breaks
/// and restarts of the server; only when that version is too old everything is listed again.
/// Between failures it waits 0.8 s to 30 s, up to twice that, or as long as the server says.
///
/// An object that can't be read as a `T` is passed over, and a field of it that can't be read counts as
/// absent: [`Client::unread`] tells of both.
pub struct Watcher<T> {
    state: State<T>,
    slot: Slot<T>,
    problem: watch::Receiver<Option<String>>,
}

enum State<T> {
    /// Nobody has asked yet.
    Ready(Box<run::Feed<T>>),
    /// Runs only while somebody waits.
    Running(Pin<Box<dyn Future<Output = Infallible> + Send>>),
    /// Between the two.
    Starting,
}

/// How long one watch lasts at least: the kubelet's. At most it is twice that.
const LASTING: Duration = Duration::from_secs(5 * 60);

impl<T: DeserializeOwned + Send + 'static> Watcher<T> {
    pub(crate) fn new(client: Client, target: WatchTarget) -> Self {
        let (tell, problem) = watch::channel(None);
        let slot = Slot::default();
        let feed = run::Feed::new(client, target, LASTING, slot.clone(), tell);
        Self {
            state: State::Ready(Box::new(feed)),
            slot,
            problem,
        }
    }

    /// Asks the server to end each watch after `least` to twice that, instead of 5 to 10 minutes:
    /// for collections that there are many of. Has no effect after the first
    /// [`next`](Self::next).
    #[must_use]
    pub fn lasting(mut self, least: Duration) -> Self {
        if let State::Ready(feed) = &mut self.state {
            feed.lasting = least;
        }
        self
    }

    /// The next change. May be dropped while waiting: nothing is lost. Work is done only while
    /// somebody waits here.
    pub async fn next(&mut self) -> Change<T> {
        poll_fn(|context| {
            if let State::Ready(_) = self.state
                && let State::Ready(feed) = std::mem::replace(&mut self.state, State::Starting)
            {
                self.state = State::Running(Box::pin(feed.follow()));
            }
            if let Some(change) = self.slot.take() {
                return Poll::Ready(change);
            }
            if let State::Running(run) = &mut self.state
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

/// Where the run puts a change for whoever waits: one place, no queue.
struct Slot<T>(Arc<Mutex<Option<Change<T>>>>);

impl<T> Slot<T> {
    fn take(&self) -> Option<Change<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives a change away and waits until it was taken. Whoever takes it is the one that runs this
    /// future, so that nobody needs to be woken.
    async fn put(&self, change: Change<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(change);
        poll_fn(|_| {
            let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_some() {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests;
