//! Reports of a child to its parent during the start, and the barrier at which the child waits.
//!
//! Each report is one packet on a socket: a letter and a text. The socket closes at execve(2) or
//! exit, so that neither can be missed.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
    pipe::{PipeFlags, pipe_with},
};

const INIT: u8 = b'i';
const WARNING: u8 = b'w';
const CREATED: u8 = b'c';
const FAILED: u8 = b'f';
const PASSED: u8 = b'p';
const START_FAILED: u8 = b's';

use crate::stdio::above;

/// Maximum bytes of a report; longer ones are truncated.
const LONGEST: usize = 4096;

/// A report of a child.
#[derive(Debug)]
pub enum ChildReport {
    /// The init was forked by the process that prepares it, see [`crate::Launching::prepares`]. The
    /// first report.
    Init {
        /// Its PID in the caller's PID namespace; it is a child of the caller.
        pid: i32,
        /// Its pidfd.
        pidfd: OwnedFd,
    },
    /// The process is set up and waits at the barrier.
    Created {
        /// The master of its terminal, if requested.
        console: Option<OwnedFd>,
        /// Steps that failed and are not fatal, such as a limit that can't be raised.
        warnings: Vec<String>,
    },
    /// The setup failed, and the process exits; nothing of the container ran. The last report.
    Failed(String),
    /// The program runs. The last report.
    Started,
    /// The program could not be executed; the process exits. The last report.
    StartFailed(String),
}

/// The receiving end of a child's reports.
#[derive(Debug)]
pub struct ChildReports {
    socket: OwnedFd,
    warnings: Vec<String>,
    created: bool,
    passed: bool,
    /// The child reported a failure.
    reported_failure: bool,
    /// [`ChildReport::Init`] is expected; the init's own reports may arrive before it.
    expects_init: bool,
    /// The init's early report.
    kept: Option<ChildReport>,
}

/// Holds a child back from executing its program, like runc's exec fifo.
#[derive(Debug)]
pub struct StartBarrier {
    pipe: OwnedFd,
}

/// The child's ends.
#[derive(Debug)]
pub(crate) struct ChildReporter {
    socket: OwnedFd,
    barrier: OwnedFd,
}

/// Creates both ends.
pub(crate) fn channel() -> io::Result<(ChildReports, StartBarrier, ChildReporter)> {
    let flags = SocketFlags::CLOEXEC;
    let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let (barrier, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
    let (theirs, barrier) = (above(theirs)?, above(barrier)?);
    let reports = ChildReports {
        socket,
        warnings: Vec::new(),
        created: false,
        passed: false,
        reported_failure: false,
        expects_init: false,
        kept: None,
    };
    let reporter = ChildReporter {
        socket: theirs,
        barrier,
    };
    Ok((reports, StartBarrier { pipe }, reporter))
}

impl AsFd for ChildReports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads the next report; `None` if none has arrived yet. Never blocks. Drop `reports` after the
/// last one (see [`ChildReport`]).
///
/// # Errors
/// The descriptor can't be read.
pub fn read_report(reports: &mut ChildReports) -> io::Result<Option<ChildReport>> {
    loop {
        if !reports.expects_init
            && let Some(kept) = reports.kept.take()
        {
            return Ok(Some(kept));
        }
        let Some((packet, console)) = receive(&reports.socket)? else {
            return Ok(None);
        };
        let Some((kind, text)) = packet.split_first() else {
            return Ok(Some(reports.ended()));
        };
        let text = || String::from_utf8_lossy(text).into_owned();
        match *kind {
            INIT => {
                let (pid, pidfd) = text().parse().ok().zip(console).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidData, "an init without a PID")
                })?;
                reports.expects_init = false;
                return Ok(Some(ChildReport::Init { pid, pidfd }));
            }
            WARNING => reports.warnings.push(text()),
            CREATED => {
                reports.created = true;
                let warnings = std::mem::take(&mut reports.warnings);
                let created = ChildReport::Created { console, warnings };
                if !reports.expects_init {
                    return Ok(Some(created));
                }
                // The init was faster than the process that reports it.
                reports.kept = Some(created);
            }
            PASSED => reports.passed = true,
            FAILED => {
                reports.reported_failure = true;
                return Ok(Some(ChildReport::Failed(text())));
            }
            START_FAILED => return Ok(Some(ChildReport::StartFailed(text()))),
            _ => {}
        }
    }
}

/// Reads the failure of a child that has exited; `None` if it succeeded.
pub(crate) fn read_failure(reports: &mut ChildReports) -> Option<String> {
    match read_report(reports) {
        Ok(Some(ChildReport::Failed(text))) if reports.reported_failure => Some(text),
        _ => None,
    }
}

impl ChildReports {
    /// From now on, [`ChildReport::Init`] is returned before the init's own reports.
    pub(crate) fn expect_init(&mut self) {
        self.expects_init = true;
    }

    fn ended(&self) -> ChildReport {
        match (self.created, self.passed) {
            (_, true) => ChildReport::Started,
            (false, false) => ChildReport::Failed(
                "the container's init was killed during its setup; its memory limit may be too low"
                    .to_owned(),
            ),
            (true, false) => ChildReport::StartFailed(
                "the container's init was killed before its program was executed".to_owned(),
            ),
        }
    }
}

/// Receives a packet: an empty one at the end, `None` if none has arrived yet.
fn receive(socket: &OwnedFd) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
    let mut packet = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut packet)];
        match recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(received) => break received.bytes,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::CONNRESET) => break 0,
            Err(error) => return Err(error.into()),
        }
    };
    packet.truncate(received);
    let console = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(Some((packet, console)))
}

/// Lets a child execute its program. May be called before the child waits.
pub fn open_barrier(barrier: StartBarrier) {
    // The exit of a child shows in its reports.
    let _ = rustix::io::write(&barrier.pipe, b"g");
    drop(barrier);
}

impl ChildReporter {
    /// Its descriptors, which must stay open until execve(2).
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.socket.as_fd(), self.barrier.as_fd()]
    }

    /// Reports a step that failed and is not fatal.
    pub(crate) fn warning(&self, text: &str) {
        self.send(WARNING, text);
    }

    /// Reports that the setup failed.
    pub(crate) fn failed(&self, text: &str) {
        self.send(FAILED, text);
    }

    /// Reports that the program could not be executed.
    pub(crate) fn start_failed(&self, text: &str) {
        self.send(START_FAILED, text);
    }

    /// A copy for another process.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            barrier: self.barrier.try_clone()?,
        })
    }

    /// Reports a forked init.
    pub(crate) fn init(&self, pid: i32, pidfd: &OwnedFd) -> io::Result<()> {
        self.pass(INIT, &pid.to_string(), Some(pidfd))
    }

    /// Reports that the setup is complete.
    pub(crate) fn created(&self, console: Option<&OwnedFd>) -> io::Result<()> {
        self.pass(CREATED, "", console)
    }

    fn pass(&self, kind: u8, text: &str, file: Option<&OwnedFd>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = file.map(|file| [file.as_fd()]);
        if let Some(fds) = &fds {
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        let kind = [kind];
        let packet = [IoSlice::new(&kind), IoSlice::new(text.as_bytes())];
        sendmsg(&self.socket, &packet, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits until the barrier is opened, and reports it. `false` if the barrier was dropped.
    pub(crate) fn wait_at_barrier(&self) -> bool {
        let mut byte = [0];
        let opened = loop {
            match rustix::io::read(&self.barrier, &mut byte) {
                Ok(read) => break read == 1,
                Err(Errno::INTR) => {}
                Err(_) => break false,
            }
        };
        if opened {
            self.send(PASSED, "");
        }
        opened
    }

    /// Plain write(2), because the container's seccomp filter may already apply and is least likely
    /// to forbid that.
    fn send(&self, kind: u8, text: &str) {
        let mut packet = vec![kind];
        packet.extend(text.bytes().take(LONGEST - 1));
        // Errors are ignored: the parent may have exited.
        let _ = rustix::io::write(&self.socket, &packet);
    }
}

#[cfg(test)]
mod tests;
