//! Exits of container processes, as the kernel reports them by pidfd.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use rubelet_base::ContainerId;
use rubelet_host::init_process;
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::timeout,
};
use tracing::debug;

/// Longest wait until the parent has reaped an exited process; after that the exit is reported
/// without its exit code.
const REAPED_WITHIN: Duration = Duration::from_millis(20);

/// Reports exits of container processes.
pub trait Processes: Send + Sync {
    /// Resolves when the container's init process exits, with its exit code (128 + signal for
    /// signals) where the kernel reports it. `None` if the process is gone, its PID was reused, or
    /// it cannot be watched.
    fn end(&self, pid: u32, container: &ContainerId) -> Option<BoxFuture<'static, Option<i32>>>;
}

/// Processes of this machine, each watched by a pidfd: no system call is needed while they run.
#[derive(Debug)]
pub struct HostProcesses {
    watched: Arc<AtomicUsize>,
    limit: usize,
}

impl HostProcesses {
    /// Uses at most half of the file descriptors that this process may open.
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
    fn end(&self, pid: u32, container: &ContainerId) -> Option<BoxFuture<'static, Option<i32>>> {
        let slot = WatchSlot::take(&self.watched, self.limit)?;
        let opened = init_process::open(pid, container.as_str());
        let process = opened.and_then(|process| process.map(watched).transpose());
        let process = process.unwrap_or_else(|error| {
            debug!(%container, pid, %error, "Failed to watch the process of a container");
            None
        })?;
        Some(Box::pin(async move {
            let _slot = slot;
            if process.readable().await.is_err() {
                // The tokio runtime shuts down, and the agent with it.
                std::future::pending::<()>().await;
            }
            timeout(REAPED_WITHIN, exit_code(&process))
                .await
                .unwrap_or_default()
        }))
    }
}

/// The exit code of a process that has exited, once it is reaped. `None` at once where the kernel
/// does not report it (Linux before 6.15).
async fn exit_code(process: &AsyncFd<OwnedFd>) -> Option<i32> {
    loop {
        let mut guard = process.readable().await.ok()?;
        match init_process::exit_code(process.get_ref()) {
            // A pidfd becomes readable on exit, and hangs up when the process is reaped. Only then
            // does the kernel report the exit code.
            Ok(None) if !guard.ready().is_read_closed() => guard.clear_ready(),
            code => return code.ok().flatten(),
        }
    }
}

/// Registers a pidfd with tokio; it becomes readable when the process exits.
#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change; this one's can't"
)]
fn watched(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
}

/// The right to use one file descriptor, released on drop.
struct WatchSlot(Arc<AtomicUsize>);

impl WatchSlot {
    fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let slot = Self(Arc::clone(taken));
        (taken.fetch_add(1, Ordering::Relaxed) < limit).then_some(slot)
    }
}

impl Drop for WatchSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_processes_are_watched_than_the_limit_allows() {
        let taken = Arc::default();
        let first = WatchSlot::take(&taken, 2);
        let second = WatchSlot::take(&taken, 2);
        assert!(first.is_some() && second.is_some());
        assert!(WatchSlot::take(&taken, 2).is_none());
        drop(first);
        assert!(WatchSlot::take(&taken, 2).is_some());
    }
}
