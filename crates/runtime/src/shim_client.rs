//! The agent's side of the connection to one shim.
//!
//! One task per shim owns the socket. Calls have a number and may be answered in any order; events
//! of the shim go to a callback at once, in order, from that task. The connection ends with the
//! shim, which the task detects by the socket and by a pidfd.

mod task;

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rubelet_cri::CriErrorKind;
use rubelet_shim::protocol::{
    Call, CallFailure, Event, FailureKind, FromAgent, Hello, Request, ShimReply, VERSION, encode,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::{mpsc, oneshot, watch},
};

use crate::error::{Result, RuntimeError};

/// Deadline of one call. The longest call creates a container; a shim that takes longer hangs, and
/// only its own pod waits.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// An event on the connection to a shim.
#[derive(Debug)]
pub(crate) enum ShimEvent {
    /// An event that the shim reports.
    Event(Event),
    /// The shim exited, or the connection broke; delivered once, as the last event.
    Ended {
        /// The cause, if known.
        reason: String,
    },
}

/// A callback for the events of a shim. Called from the connection's task, so it must not block.
pub(crate) type ShimEventHandler = Box<dyn FnMut(ShimEvent) + Send>;

/// A connection to a shim.
#[derive(Debug)]
pub(crate) struct ShimClient {
    outgoing: mpsc::UnboundedSender<OutgoingFrame>,
    numbers: AtomicU64,
    pid: i32,
    handle: Arc<OwnedFd>,
    ended: watch::Receiver<bool>,
}

/// A frame on its way out.
#[derive(Debug)]
struct OutgoingFrame {
    frame: Vec<u8>,
    fds: Vec<OwnedFd>,
    waits: Option<(u64, oneshot::Sender<ShimResponse>)>,
}

/// A reply with its file descriptors.
#[derive(Debug)]
struct ShimResponse {
    outcome: Result<ShimReply, CallFailure>,
    fds: Vec<OwnedFd>,
}

impl ShimClient {
    /// Takes over a connected socket to the shim with process ID `pid` and pidfd `handle`. Reports
    /// may arrive before this returns.
    pub(crate) fn open(
        socket: std::os::unix::net::UnixStream,
        pid: i32,
        handle: OwnedFd,
        on_event: ShimEventHandler,
    ) -> std::io::Result<Arc<Self>> {
        socket.set_nonblocking(true)?;
        let socket = tokio::net::UnixStream::from_std(socket)?;
        let (outgoing, queue) = mpsc::unbounded_channel();
        let (ended, watched) = watch::channel(false);
        let handle = Arc::new(handle);
        let link = Arc::new(Self {
            outgoing,
            numbers: AtomicU64::new(0),
            pid,
            handle: Arc::clone(&handle),
            ended: watched,
        });
        // Queued before any caller has the connection, so that it is the first message.
        let hello = Hello {
            version: VERSION,
            subscribe: true,
            pid: i32::try_from(std::process::id()).unwrap_or(0),
        };
        link.send(&FromAgent::Hello(hello), Vec::new(), None)
            .map_err(|error| std::io::Error::other(error.message))?;
        let task = task::ConnectionTask::new(
            socket,
            handle,
            queue,
            link.outgoing.downgrade(),
            on_event,
            ended,
        );
        tokio::spawn(task.run());
        Ok(link)
    }

    /// Process ID of the shim.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Reports whether the shim has exited.
    pub(crate) fn has_exited(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the exit of the shim for at most `within`; returns whether it has exited.
    pub(crate) async fn wait_for_exit(&self, within: Duration) -> bool {
        let mut ended = self.ended.clone();
        tokio::time::timeout(within, ended.wait_for(|ended| *ended))
            .await
            .is_ok()
    }

    /// Waits until its process has exited, which may be shortly after its connection ended, and
    /// reaps it.
    pub(crate) async fn reap(&self) {
        let Ok(process) = watch_process(&self.handle) else {
            return;
        };
        if tokio::time::timeout(CALL_TIMEOUT, process.readable())
            .await
            .is_ok()
        {
            // A shim that an earlier agent started is not our child; init reaps it.
            let _ = rubelet_shim::spawn::reap(self.handle.as_fd());
        }
    }

    /// Reports whether its process still runs, even if the connection broke.
    pub(crate) fn process_lives(&self) -> bool {
        let mut watched = [PollFd::new(&self.handle, PollFlags::IN)];
        matches!(poll(&mut watched, Some(&Timespec::default())), Ok(0))
    }

    /// Kills the shim.
    pub(crate) fn kill(&self) {
        // It may have exited already.
        let _ = pidfd_send_signal(self.handle.as_fd(), Signal::KILL);
    }

    /// Makes a call without file descriptors.
    pub(crate) async fn call(&self, call: Call) -> Result<ShimReply> {
        self.call_with(call, Vec::new())
            .await
            .map(|(answer, _)| answer)
    }

    /// Makes a call with file descriptors; the reply may have some, too.
    pub(crate) async fn call_with(
        &self,
        call: Call,
        fds: Vec<OwnedFd>,
    ) -> Result<(ShimReply, Vec<OwnedFd>)> {
        let id = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let (waits, reply) = oneshot::channel();
        self.send(
            &FromAgent::Request(Request { id, call }),
            fds,
            Some((id, waits)),
        )?;
        match tokio::time::timeout(CALL_TIMEOUT, reply).await {
            Ok(Ok(ShimResponse { outcome, fds })) => Ok((outcome.map_err(error)?, fds)),
            Ok(Err(_)) => Err(shim_exited()),
            Err(_) => Err(RuntimeError::new(
                CriErrorKind::DeadlineExceeded(CALL_TIMEOUT),
                format!(
                    "the shim of the pod (PID {}) did not answer within {} s",
                    self.pid,
                    CALL_TIMEOUT.as_secs()
                ),
            )),
        }
    }

    /// Makes a call and ignores the reply. Calls arrive in the order in which they are posted.
    pub(crate) fn post(&self, call: Call) {
        let id = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let request = FromAgent::Request(Request { id, call });
        // It fails only if the shim has exited.
        let _ = self.send(&request, Vec::new(), None);
    }

    fn send(
        &self,
        message: &FromAgent,
        fds: Vec<OwnedFd>,
        waits: Option<(u64, oneshot::Sender<ShimResponse>)>,
    ) -> Result<()> {
        let frame =
            encode(message, fds.len()).map_err(|error| RuntimeError::invalid(error.to_string()))?;
        let outgoing = OutgoingFrame { frame, fds, waits };
        self.outgoing.send(outgoing).map_err(|_| shim_exited())
    }
}

/// Becomes readable when the process has exited. One at a time for each handle.
#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change; this one's can't"
)]
fn watch_process(handle: &Arc<OwnedFd>) -> std::io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(Arc::clone(handle), Interest::READABLE)
}

/// A pidfd of a process. Only valid if something else, such as an open connection, proves that the
/// PID is still that process's.
pub(crate) fn process_handle(pid: i32) -> std::io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(std::io::ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// The error of calls after the shim exited.
pub(crate) fn shim_exited() -> RuntimeError {
    RuntimeError::failed("the shim of the pod has exited")
}

fn error(failure: CallFailure) -> RuntimeError {
    match failure.kind {
        FailureKind::NotFound => RuntimeError::not_found(failure.message),
        FailureKind::AlreadyExists => {
            RuntimeError::new(CriErrorKind::AlreadyExists, failure.message)
        }
        FailureKind::WrongState => RuntimeError::state(failure.message),
        FailureKind::Invalid => RuntimeError::invalid(failure.message),
        FailureKind::Unsupported => RuntimeError::new(CriErrorKind::Unimplemented, failure.message),
        FailureKind::Runtime | FailureKind::Host | FailureKind::Internal => {
            RuntimeError::failed(failure.message)
        }
    }
}
