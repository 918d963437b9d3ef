//! stdin, stdout and stderr as descriptors, for more than lines of text.
//!
//! Other processes share them: the shell, and those at the other ends of a pipeline. So they are
//! never set to non-blocking; threads wait for them.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    thread,
};

use bytes::Bytes;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    pipe::PipeFlags,
};
use tokio::sync::{mpsc, oneshot};

/// Size of one read: a full pipe of the default size.
const READ: usize = 64 << 10;

/// The standard streams of a command.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Streams {
    /// The streams of this process.
    pub(super) fn of_process() -> io::Result<Self> {
        Ok(Self {
            stdin: io::stdin().as_fd().try_clone_to_owned()?,
            stdout: io::stdout().as_fd().try_clone_to_owned()?,
            stderr: io::stderr().as_fd().try_clone_to_owned()?,
        })
    }
}

/// Reads a descriptor in a thread.
pub(super) struct Input {
    pieces: mpsc::Receiver<Bytes>,
    // Dropping it wakes the thread, which would otherwise consume what is typed after the command.
    _running: OwnedFd,
}

impl Input {
    /// Starts reading.
    pub(super) fn read(fd: &OwnedFd) -> io::Result<Self> {
        let fd = fd.try_clone()?;
        let (stopped, running) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (sender, pieces) = mpsc::channel(1);
        thread::Builder::new().spawn(move || {
            while let Some(piece) = next_piece(&fd, &stopped) {
                if sender.blocking_send(piece).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            pieces,
            _running: running,
        })
    }

    /// The next bytes; `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.pieces.recv().await
    }
}

/// The next bytes of a descriptor; `None` at its end, or when the other one signals to stop.
fn next_piece(fd: &OwnedFd, stopped: &OwnedFd) -> Option<Bytes> {
    let mut buffer = Vec::with_capacity(READ);
    loop {
        let mut polled = [
            PollFd::new(fd, PollFlags::IN),
            PollFd::new(stopped, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) if !polled[1].revents().is_empty() => return None,
            Ok(_) => {}
        }
        match rustix::io::read(fd, rustix::buffer::spare_capacity(&mut buffer)) {
            // Another process has set it to non-blocking, or read the data first.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => return None,
            Ok(_) => return Some(buffer.into()),
        }
    }
}

/// Writes to a descriptor in a thread.
pub(super) struct Output {
    pieces: mpsc::Sender<Bytes>,
    ended: oneshot::Receiver<io::Result<()>>,
}

impl Output {
    /// Starts writing.
    pub(super) fn write(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let fd = fd.try_clone_to_owned()?;
        let (pieces, mut received) = mpsc::channel::<Bytes>(1);
        let (end, ended) = oneshot::channel();
        thread::Builder::new().spawn(move || {
            let mut written = Ok(());
            while let Some(piece) = received.blocking_recv() {
                written = write_all(&fd, &piece);
                if written.is_err() {
                    break;
                }
            }
            // The receiver is gone if the session was interrupted.
            let _ = end.send(written);
        })?;
        Ok(Self { pieces, ended })
    }

    /// Writes bytes; waits while the descriptor is not writable.
    pub(super) async fn put(&mut self, bytes: Bytes) -> io::Result<()> {
        if self.pieces.send(bytes).await.is_ok() {
            return Ok(());
        }
        self.ended()
            .await
            .and(Err(io::ErrorKind::BrokenPipe.into()))
    }

    /// Waits until all is written.
    pub(super) async fn finish(mut self) -> io::Result<()> {
        let (closed, _) = mpsc::channel(1);
        self.pieces = closed;
        self.ended().await
    }

    async fn ended(&mut self) -> io::Result<()> {
        let gone = |_| Err(io::ErrorKind::BrokenPipe.into());
        (&mut self.ended).await.unwrap_or_else(gone)
    }
}

fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(fd, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
