//! The kernel's word on the processes of containers.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::BoxFuture;
use rubelet_base::ContainerId;
use rubelet_host::init_process;
use tokio::io::{Interest, unix::AsyncFd};
use tracing::debug;

/// Tells when processes end.
pub trait Processes: Send + Sync {
    /// Ends when this process does, which must be the init process of that container. `None` if it
    /// is gone already, is something else here, or can't be watched.
    fn end(&self, pid: u32, container: &ContainerId) -> Option<BoxFuture<'static, ()>>;
}

/// Processes of this machine, each watched by a descriptor: nothing is asked while they run.
#[derive(Debug)]
pub struct HostProcesses {
    watched: Arc<AtomicUsize>,
    limit: usize,
}

impl HostProcesses {
    /// Leaves half of the descriptors that this process may open to everything else.
    #[must_use]
    pub fn new() -> Self {
        Self {
            watched: Arc::default(),
            limit: init_process::descriptors() / 2,
        }
    }
}

impl Default for HostProcesses {
    fn default() -> Self {
        Self::new()
    }
}

impl Processes for HostProcesses {
    fn end(&self, pid: u32, container: &ContainerId) -> Option<BoxFuture<'static, ()>> {
        let place = Place::take(&self.watched, self.limit)?;
        let opened = init_process::open(pid, container.as_str());
        let process = opened.and_then(|process| process.map(watched).transpose());
        let process = process.unwrap_or_else(|error| {
            debug!(%container, pid, %error, "The process of a container can't be watched");
            None
        })?;
        Some(Box::pin(async move {
            let _place = place;
            if process.readable().await.is_err() {
                // The reactor is gone, and the agent with it.
                std::future::pending::<()>().await;
            }
        }))
    }
}

/// Becomes readable when the process has ended.
#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change; this one's can't"
)]
fn watched(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
}

/// One of the descriptors that may be used for this.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let place = Self(Arc::clone(taken));
        (taken.fetch_add(1, Ordering::Relaxed) < limit).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_watched_than_there_are_places() {
        let taken = Arc::default();
        let first = Place::take(&taken, 2);
        let second = Place::take(&taken, 2);
        assert!(first.is_some() && second.is_some());
        assert!(Place::take(&taken, 2).is_none());
        drop(first);
        assert!(Place::take(&taken, 2).is_some());
    }
}
