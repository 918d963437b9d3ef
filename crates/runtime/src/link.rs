//! The agent's side of the connection to one shim.
//!
//! One task per shim owns the socket. Calls are sent with a number and may be answered in any order;
//! what the shim reports goes to a callback at once, in order, from that task. The connection ends
//! when the shim does, which the task learns from the socket and from a handle on the process.

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
    Answer, Call, Event, Failure, FailureKind, FromAgent, Hello, Request, VERSION, encode,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::{mpsc, oneshot, watch},
};

use crate::fault::{Fault, Outcome};

/// How long a shim may take for one call. The longest one makes a container; a shim that needs
/// longer hangs, and only its own pod waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a shim reports.
#[derive(Debug)]
pub(crate) enum Report {
    /// Something happened in the pod.
    Event(Event),
    /// The shim has ended, or the connection to it; said once, as the last.
    Ended {
        /// Why, as far as known.
        reason: String,
    },
}

/// Takes what a shim reports. Called from the link's task: it must not block.
pub(crate) type Reporter = Box<dyn FnMut(Report) + Send>;

/// A connection to a shim.
#[derive(Debug)]
pub(crate) struct ShimLink {
    outgoing: mpsc::UnboundedSender<Outgoing>,
    numbers: AtomicU64,
    pid: i32,
    handle: Arc<OwnedFd>,
    ended: watch::Receiver<bool>,
}

/// A frame on its way out.
#[derive(Debug)]
struct Outgoing {
    frame: Vec<u8>,
    fds: Vec<OwnedFd>,
    waits: Option<(u64, oneshot::Sender<Reply>)>,
}

/// What came back, with the descriptors that came along.
#[derive(Debug)]
struct Reply {
    outcome: Result<Answer, Failure>,
    fds: Vec<OwnedFd>,
}

impl ShimLink {
    /// Takes over a connected socket to the shim with process ID `pid`, whose handle is `handle`.
    /// Reports begin as soon as this is called.
    pub(crate) fn open(
        socket: std::os::unix::net::UnixStream,
        pid: i32,
        handle: OwnedFd,
        reporter: Reporter,
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
        let hello = Hello {
            version: VERSION,
            subscribe: true,
            pid: i32::try_from(std::process::id()).unwrap_or(0),
        };
        link.send(&FromAgent::Hello(hello), Vec::new(), None)
            .map_err(|fault| std::io::Error::other(fault.message))?;
        let task = task::Task::new(
            socket,
            handle,
            queue,
            link.outgoing.downgrade(),
            reporter,
            ended,
        );
        tokio::spawn(task.run());
        Ok(link)
    }

    /// Process ID of the shim.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether the shim has ended.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the end of the shim, for at most so long; whether it has ended.
    pub(crate) async fn wait_for_end(&self, within: Duration) -> bool {
        let mut ended = self.ended.clone();
        tokio::time::timeout(within, ended.wait_for(|ended| *ended))
            .await
            .is_ok()
    }

    /// Waits until its process has ended, which may be a moment after its connection, and takes
    /// its exit status.
    pub(crate) async fn reap(&self) {
        let Ok(process) = watch_process(&self.handle) else {
            return;
        };
        if tokio::time::timeout(PATIENCE, process.readable())
            .await
            .is_ok()
        {
            // A shim of an earlier agent is reaped by the system.
            let _ = rubelet_shim::spawn::reap(self.handle.as_fd());
        }
    }

    /// Whether its process is still there, whatever became of the connection.
    pub(crate) fn process_lives(&self) -> bool {
        let mut watched = [PollFd::new(&self.handle, PollFlags::IN)];
        matches!(poll(&mut watched, Some(&Timespec::default())), Ok(0))
    }

    /// Kills the shim.
    pub(crate) fn kill(&self) {
        // It may have ended by itself.
        let _ = pidfd_send_signal(self.handle.as_fd(), Signal::KILL);
    }

    /// Makes a call that takes no descriptors.
    pub(crate) async fn call(&self, call: Call) -> Outcome<Answer> {
        self.call_with(call, Vec::new())
            .await
            .map(|(answer, _)| answer)
    }

    /// Makes a call; the descriptors go along, and others may come back.
    pub(crate) async fn call_with(
        &self,
        call: Call,
        fds: Vec<OwnedFd>,
    ) -> Outcome<(Answer, Vec<OwnedFd>)> {
        let id = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let (waits, reply) = oneshot::channel();
        self.send(
            &FromAgent::Request(Request { id, call }),
            fds,
            Some((id, waits)),
        )?;
        match tokio::time::timeout(PATIENCE, reply).await {
            Ok(Ok(Reply { outcome, fds })) => Ok((outcome.map_err(fault)?, fds)),
            Ok(Err(_)) => Err(gone()),
            Err(_) => Err(Fault::new(
                CriErrorKind::DeadlineExceeded(PATIENCE),
                format!(
                    "the supervisor of the pod (process {}) did not answer within {} s",
                    self.pid,
                    PATIENCE.as_secs()
                ),
            )),
        }
    }

    fn send(
        &self,
        message: &FromAgent,
        fds: Vec<OwnedFd>,
        waits: Option<(u64, oneshot::Sender<Reply>)>,
    ) -> Outcome<()> {
        let frame =
            encode(message, fds.len()).map_err(|error| Fault::invalid(error.to_string()))?;
        let outgoing = Outgoing { frame, fds, waits };
        self.outgoing.send(outgoing).map_err(|_| gone())
    }
}

/// Becomes readable when the process has ended. One at a time for each handle.
#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change; this one's can't"
)]
fn watch_process(handle: &Arc<OwnedFd>) -> std::io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(Arc::clone(handle), Interest::READABLE)
}

/// A handle on a process, to be taken while something else proves that it lives.
pub(crate) fn process_handle(pid: i32) -> std::io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(std::io::ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Nobody is there to do it any more.
pub(crate) fn gone() -> Fault {
    Fault::failed("the supervisor of the pod has ended")
}

fn fault(failure: Failure) -> Fault {
    match failure.kind {
        FailureKind::NotFound => Fault::not_found(failure.message),
        FailureKind::AlreadyExists => Fault::new(CriErrorKind::AlreadyExists, failure.message),
        FailureKind::WrongState => Fault::state(failure.message),
        FailureKind::Invalid => Fault::invalid(failure.message),
        FailureKind::Unsupported => Fault::new(CriErrorKind::Unimplemented, failure.message),
        FailureKind::Runtime | FailureKind::Host | FailureKind::Internal => {
            Fault::failed(failure.message)
        }
    }
}
