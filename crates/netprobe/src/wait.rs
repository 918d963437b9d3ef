//! Waiting for sockets, with an end that another thread can bring about.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};

/// The readiness of a socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ready {
    /// A datagram, or the end of a connection.
    pub received: bool,
    /// An entry of the error queue, or a pending error.
    pub errors: bool,
    /// A connection is established, or has failed.
    pub connected: bool,
}

/// Waits until one of the sockets has something, `stop` is readable or closed, or the time is over.
/// Returns what is ready at each socket; `None` once it is to stop.
///
/// # Errors
/// The kernel returns an error.
pub fn wait(
    stop: BorrowedFd<'_>,
    sockets: &[BorrowedFd<'_>],
    wanted: PollFlags,
    timeout: Duration,
) -> io::Result<Option<Vec<Ready>>> {
    let mut polled: Vec<PollFd<'_>> =
        std::iter::once(PollFd::from_borrowed_fd(stop, PollFlags::IN))
            .chain(
                sockets
                    .iter()
                    .map(|socket| PollFd::from_borrowed_fd(*socket, wanted)),
            )
            .collect();
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let Some((stop, sockets)) = polled.split_first() else {
        return Ok(None);
    };
    if !stop.revents().is_empty() {
        return Ok(None);
    }
    let ready = sockets.iter().map(|polled| {
        let events = polled.revents();
        Ready {
            received: events.intersects(PollFlags::IN | PollFlags::HUP),
            errors: events.contains(PollFlags::ERR),
            connected: events.contains(PollFlags::OUT),
        }
    });
    Ok(Some(ready.collect()))
}

/// Ends a probe that another thread runs, when it is dropped.
#[derive(Debug)]
pub struct StopHandle(#[expect(dead_code, reason = "it is closed when this is dropped")] OwnedFd);

/// Wake-ups of a probe besides its sockets.
#[derive(Debug)]
pub struct StopSignal(OwnedFd);

impl AsFd for StopSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A handle and the signal that it gives.
///
/// # Errors
/// No pipe can be opened.
pub fn stop_pair() -> io::Result<(StopHandle, StopSignal)> {
    let (signal, handle) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((StopHandle(handle), StopSignal(signal)))
}
