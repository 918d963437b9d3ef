//! What a child tells its parent on the way to its program, and the gate it waits at.
//!
//! Each report is one packet on a socket: a letter and a text. The socket closes when the child
//! executes its program or ends, so that neither can be missed.

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

use crate::standard::above;

/// Longest report in bytes; what is longer is cut.
const LONGEST: usize = 4096;

/// One thing a child tells.
#[derive(Debug)]
pub enum Report {
    /// The init that another process has prepared, see [`crate::Launching::prepares`]. The first
    /// report.
    Init {
        /// The process, as seen by the caller, whose child it is.
        pid: i32,
        /// The same process.
        pidfd: OwnedFd,
    },
    /// It is set up and waits at the gate.
    Created {
        /// The other end of its terminal, if one was asked for.
        console: Option<OwnedFd>,
        /// What could not be done and is not worth failing, such as a limit that this machine
        /// doesn't let anyone raise.
        warnings: Vec<String>,
    },
    /// It could not be set up and ended; nothing of the container ran. The last report.
    Failed(String),
    /// The program runs. The last report.
    Started,
    /// The program could not be executed; the process ended. The last report.
    StartFailed(String),
}

/// The receiving end of a child's reports.
#[derive(Debug)]
pub struct Reports {
    socket: OwnedFd,
    warnings: Vec<String>,
    created: bool,
    passed: bool,
    /// Whether the child itself told that it failed.
    told: bool,
    /// Whether an init is to be handed over, which may speak before that.
    expects_init: bool,
    /// What it said.
    kept: Option<Report>,
}

/// Holds a child back from executing its program.
#[derive(Debug)]
pub struct Gate {
    pipe: OwnedFd,
}

/// The child's ends.
#[derive(Debug)]
pub(crate) struct Reporter {
    socket: OwnedFd,
    gate: OwnedFd,
}

/// Makes both ends.
pub(crate) fn channel() -> io::Result<(Reports, Gate, Reporter)> {
    let flags = SocketFlags::CLOEXEC;
    let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let (gate, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
    let (theirs, gate) = (above(theirs)?, above(gate)?);
    let reports = Reports {
        socket,
        warnings: Vec::new(),
        created: false,
        passed: false,
        told: false,
        expects_init: false,
        kept: None,
    };
    let reporter = Reporter {
        socket: theirs,
        gate,
    };
    Ok((reports, Gate { pipe }, reporter))
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The next report; `None` if there is none yet. Never blocks. After the last report (see
/// [`Report`]) it is to be dropped.
///
/// # Errors
/// The descriptor can't be read.
pub fn read_report(reports: &mut Reports) -> io::Result<Option<Report>> {
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
                    io::Error::new(io::ErrorKind::InvalidData, "an init without a number")
                })?;
                reports.expects_init = false;
                return Ok(Some(Report::Init { pid, pidfd }));
            }
            WARNING => reports.warnings.push(text()),
            CREATED => {
                reports.created = true;
                let warnings = std::mem::take(&mut reports.warnings);
                let created = Report::Created { console, warnings };
                if !reports.expects_init {
                    return Ok(Some(created));
                }
                reports.kept = Some(created);
            }
            PASSED => reports.passed = true,
            FAILED => {
                reports.told = true;
                return Ok(Some(Report::Failed(text())));
            }
            START_FAILED => return Ok(Some(Report::StartFailed(text()))),
            _ => {}
        }
    }
}

/// Why a child failed that has ended by now; `None` if it did not.
pub(crate) fn read_failure(reports: &mut Reports) -> Option<String> {
    match read_report(reports) {
        Ok(Some(Report::Failed(text))) if reports.told => Some(text),
        _ => None,
    }
}

impl Reports {
    /// From now on [`Report::Init`] comes before all that the init tells.
    pub(crate) fn expect_init(&mut self) {
        self.expects_init = true;
    }

    fn ended(&self) -> Report {
        match (self.created, self.passed) {
            (_, true) => Report::Started,
            (false, false) => Report::Failed(
                "the container's init was killed before it was set up; perhaps its memory limit is too low"
                    .to_owned(),
            ),
            (true, false) => Report::StartFailed(
                "the container's init was killed before its program was executed".to_owned(),
            ),
        }
    }
}

/// Receives a packet; an empty one at the end, nothing if there is none yet.
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

/// Lets a child execute its program. May be done before the child has come to the gate.
pub fn open_gate(gate: Gate) {
    // A child that died meanwhile tells so by its reports.
    let _ = rustix::io::write(&gate.pipe, b"g");
    drop(gate);
}

impl Reporter {
    /// The descriptors, which the child keeps until it executes its program.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.socket.as_fd(), self.gate.as_fd()]
    }

    /// Tells what could not be done and is not worth failing.
    pub(crate) fn warning(&self, text: &str) {
        self.send(WARNING, text);
    }

    /// Tells why nothing will run.
    pub(crate) fn failed(&self, text: &str) {
        self.send(FAILED, text);
    }

    /// Tells why the program could not be executed.
    pub(crate) fn start_failed(&self, text: &str) {
        self.send(START_FAILED, text);
    }

    /// The same for another process.
    pub(crate) fn twin(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            gate: self.gate.try_clone()?,
        })
    }

    /// Hands an init over.
    pub(crate) fn init(&self, pid: i32, pidfd: &OwnedFd) -> io::Result<()> {
        self.pass(INIT, &pid.to_string(), Some(pidfd))
    }

    /// Tells that everything is set up.
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

    /// Waits until the gate is opened, and tells so. `false` if it never will be.
    pub(crate) fn pass_gate(&self) -> bool {
        let mut byte = [0];
        let opened = loop {
            match rustix::io::read(&self.gate, &mut byte) {
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

    /// Plain `write`, which is the call that filters of system calls are least likely to forbid.
    fn send(&self, kind: u8, text: &str) {
        let mut packet = vec![kind];
        packet.extend(text.bytes().take(LONGEST - 1));
        // Without a parent there is nobody to tell.
        let _ = rustix::io::write(&self.socket, &packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_in_order_and_passes_the_console() {
        let (mut reports, gate, reporter) = channel().unwrap();
        assert!(read_report(&mut reports).unwrap().is_none());
        reporter.warning("one");
        let console = rustix::fs::open(
            "/dev/null",
            rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
        reporter.created(Some(&console)).unwrap();
        let report = read_report(&mut reports).unwrap();
        assert!(matches!(
            report,
            Some(Report::Created { console: Some(_), warnings }) if warnings == ["one"]
        ));
        open_gate(gate);
        assert!(reporter.pass_gate());
        drop(reporter);
        let report = read_report(&mut reports).unwrap();
        assert!(matches!(report, Some(Report::Started)), "{report:?}");
    }

    #[test]
    fn an_init_is_known_before_what_it_tells() {
        let (mut reports, gate, reporter) = channel().unwrap();
        reports.expect_init();
        reporter.created(None).unwrap();
        assert!(read_report(&mut reports).unwrap().is_none());
        reporter.init(7, &gate.pipe).unwrap();
        let report = read_report(&mut reports).unwrap();
        assert!(matches!(report, Some(Report::Init { pid: 7, .. })));
        let report = read_report(&mut reports).unwrap();
        assert!(matches!(report, Some(Report::Created { .. })));
    }

    #[test]
    fn a_child_that_is_killed_is_no_success() {
        let (mut reports, gate, reporter) = channel().unwrap();
        drop(reporter);
        let report = read_report(&mut reports).unwrap();
        assert!(matches!(report, Some(Report::Failed(_))), "{report:?}");
        drop(gate);

        let (mut reports, gate, reporter) = channel().unwrap();
        reporter.created(None).unwrap();
        read_report(&mut reports).unwrap();
        drop(gate);
        assert!(!reporter.pass_gate());
        drop(reporter);
        let report = read_report(&mut reports).unwrap();
        assert!(matches!(report, Some(Report::StartFailed(_))), "{report:?}");
    }
}
