//! Runs pings: sends what is due, reads what arrives, reports what it means.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::ControlFlow,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use rubelet_base::error_text;
use rustix::{event::PollFlags, io::Errno};

use super::{
    event::{PingEvent, Reply},
    options::PingOptions,
    run::{PingAction, PingRun, ReplyOutcome, sequence_of},
};
use crate::{
    clock::{SessionClock, random, unix_time},
    echo_socket::{EchoError, EchoSocket, SocketError},
    sockets::OpenSocket,
    stamp::SessionKey,
    wait::wait,
};

/// The most targets of one ping: each has a socket.
pub const MOST_TARGETS: usize = 256;
/// Requests to several targets are this far apart at first, as with fping.
const STAGGER: Duration = Duration::from_millis(10);
/// Datagrams of a target that are read before others have their turn: a flood cannot starve the
/// others.
const AT_ONCE: u32 = 64;
/// The longest wait, after which the clock is read again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A target: its name, and its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PingTarget {
    /// The target, as it was given.
    pub name: String,
    /// Its address; the port is ignored.
    pub address: SocketAddr,
}

/// Why a ping can't be run.
#[derive(Debug, thiserror::Error)]
pub enum PingError {
    /// No socket for a target.
    #[error("{target}")]
    Socket {
        /// The target.
        target: String,
        /// Why.
        source: SocketError,
    },
    /// More targets than sockets.
    #[error("{0} targets are more than {MOST_TARGETS}; split them")]
    TooManyTargets(usize),
    /// Waiting failed.
    #[error("cannot wait for a socket")]
    Wait(#[source] io::Error),
}

impl PingError {
    /// The kernel's error if there is no way to a target.
    #[must_use]
    pub(crate) fn no_way(&self) -> Option<&io::Error> {
        match self {
            Self::Socket {
                source: SocketError::Connect(_, error),
                ..
            } => Some(error),
            _ => None,
        }
    }
}

/// Pings the targets until all are done, `stop` is readable or closed, or `report` breaks. Blocks the
/// thread.
///
/// # Errors
/// A socket can't be opened, or waiting fails. Errors of single requests are reported.
pub fn ping(
    targets: &[PingTarget],
    options: &PingOptions,
    open: &dyn OpenSocket,
    stop: BorrowedFd<'_>,
    report: &mut dyn FnMut(PingEvent) -> ControlFlow<()>,
) -> Result<(), PingError> {
    if targets.len() > MOST_TARGETS {
        return Err(PingError::TooManyTargets(targets.len()));
    }
    let clock = SessionClock::start();
    let mut active = Vec::with_capacity(targets.len());
    let stagger = STAGGER.min(options.interval / u32::try_from(targets.len()).unwrap_or(1).max(1));
    for (number, target) in (0_u32..).zip(targets) {
        let socket = EchoSocket::open(open, target.address, options.ttl, options.fragmentation)
            .map_err(|source| PingError::Socket {
                target: target.name.clone(),
                source,
            })?;
        let key = SessionKey::new(random());
        let started = clock.now() + stagger * number;
        active.push(ActiveTarget {
            run: PingRun::new(options.clone(), key, started),
            quiet: options.quiet,
            data: Vec::new(),
            socket,
            target,
        });
    }
    for target in &active {
        let length = options.packet_length(target.socket.family());
        let start = PingEvent::Start {
            target: target.target.name.clone(),
            address: target.target.address.ip(),
            size: options.size,
            length,
        };
        if report(start).is_break() {
            return Ok(());
        }
    }
    drive(active, clock, stop, report)
}

fn drive(
    mut active: Vec<ActiveTarget<'_>>,
    clock: SessionClock,
    stop: BorrowedFd<'_>,
    report: &mut dyn FnMut(PingEvent) -> ControlFlow<()>,
) -> Result<(), PingError> {
    // All that had arrived by then is read: an answer that waits in a socket while this thread does not
    // run is not lost.
    let mut read_until = clock.now();
    loop {
        let mut wake = clock.now() + LONGEST_WAIT;
        let mut done = Vec::new();
        for (number, target) in active.iter_mut().enumerate() {
            let now = clock.now();
            match target.run.next(now) {
                PingAction::Send(index) => {
                    if target.send(index, &clock, report).is_break() {
                        return Ok(());
                    }
                    wake = now;
                }
                PingAction::Wait(until) => wake = wake.min(until),
                PingAction::Done if target.run.next(read_until) == PingAction::Done => {
                    done.push(number);
                }
                // Read once more.
                PingAction::Done => wake = now,
            }
            if target.report_lost(read_until, report).is_break() {
                return Ok(());
            }
        }
        for number in done.into_iter().rev() {
            let target = active.remove(number);
            if report(target.summary(clock.now())).is_break() {
                return Ok(());
            }
        }
        if active.is_empty() {
            break;
        }
        let sockets: Vec<BorrowedFd<'_>> =
            active.iter().map(|target| target.socket.as_fd()).collect();
        let now = clock.now();
        let timeout = wake.saturating_sub(now);
        let ready = wait(stop, &sockets, PollFlags::IN, timeout).map_err(PingError::Wait)?;
        let Some(ready) = ready else { break };
        read_until = now;
        for (target, ready) in active.iter_mut().zip(ready) {
            if (ready.errors && target.read_errors(report).is_break())
                || (ready.received && target.read_replies(&clock, report).is_break())
            {
                return Ok(());
            }
        }
    }
    // If it was stopped, the results so far are those that count.
    for target in active {
        if report(target.summary(clock.now())).is_break() {
            break;
        }
    }
    Ok(())
}

struct ActiveTarget<'a> {
    target: &'a PingTarget,
    socket: EchoSocket,
    run: PingRun,
    data: Vec<u8>,
    quiet: bool,
}

type PingReporter<'a> = dyn FnMut(PingEvent) -> ControlFlow<()> + 'a;

impl ActiveTarget<'_> {
    fn send(
        &mut self,
        index: u64,
        clock: &SessionClock,
        report: &mut PingReporter<'_>,
    ) -> ControlFlow<()> {
        let now = clock.now();
        self.run.write_data(index, now, &mut self.data);
        let sent = self.socket.send(sequence_of(index), &self.data);
        if let Err(error) = &sent
            && matches!(
                Errno::from_io_error(error),
                Some(Errno::NOBUFS | Errno::AGAIN)
            )
        {
            self.run.postpone(now);
            return ControlFlow::Continue(());
        }
        self.run.on_sent(index, now);
        if self.quiet {
            if sent.is_err_and(|error| !is_queued(&error)) {
                self.run.on_error(None);
            }
            return ControlFlow::Continue(());
        }
        report(PingEvent::Sent {
            target: self.target.name.clone(),
            sequence: index + 1,
        })?;
        match sent {
            // It is in the queue of errors too, with the MTU.
            Err(error) if !is_queued(&error) => {
                self.run.on_error(None);
                let message = error_text(&error);
                report(self.error(None, Some(index), message))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn report_lost(&mut self, now: Duration, report: &mut PingReporter<'_>) -> ControlFlow<()> {
        while let Some(index) = self.run.take_lost(now) {
            if !self.quiet {
                report(PingEvent::Lost {
                    target: self.target.name.clone(),
                    sequence: index + 1,
                    time: unix_seconds(),
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    fn read_replies(
        &mut self,
        clock: &SessionClock,
        report: &mut PingReporter<'_>,
    ) -> ControlFlow<()> {
        let mut patience = AT_ONCE;
        while let Some(received) = self.socket.receive(&mut patience) {
            let at = clock.received(received.control.received);
            let reply = received.reply;
            let answer = self.run.on_reply(reply.sequence, reply.data, at);
            if self.quiet {
                continue;
            }
            let target = self.target.name.clone();
            let event = match answer {
                ReplyOutcome::Foreign => continue,
                ReplyOutcome::Damaged => PingEvent::Damaged {
                    target,
                    from: received.from,
                    time: unix_seconds(),
                },
                ReplyOutcome::Reply {
                    index,
                    rtt,
                    duplicate,
                    reordered,
                } => PingEvent::Reply(Reply {
                    target,
                    from: received.from,
                    sequence: index + 1,
                    bytes: received.bytes,
                    ttl: received.control.ttl,
                    rtt,
                    duplicate,
                    reordered,
                    time: unix_seconds(),
                }),
            };
            report(event)?;
        }
        ControlFlow::Continue(())
    }

    fn read_errors(&mut self, report: &mut PingReporter<'_>) -> ControlFlow<()> {
        let mut patience = AT_ONCE;
        while let Some(error) = self.socket.receive_error(&mut patience) {
            let index = self.run.on_error(error.sequence);
            if !self.quiet {
                let message = error.text();
                report(self.error(Some(&error), index, message))?;
            }
        }
        // What else is pending would wake this thread again and again.
        let _ = rustix::net::sockopt::socket_error(&self.socket);
        ControlFlow::Continue(())
    }

    fn error(&self, error: Option<&EchoError>, index: Option<u64>, message: String) -> PingEvent {
        PingEvent::Error {
            target: self.target.name.clone(),
            from: error.and_then(|error| error.from),
            sequence: index.map(|index| index + 1),
            icmp: error.and_then(|error| error.icmp),
            message,
            time: unix_seconds(),
        }
    }

    fn summary(&self, now: Duration) -> PingEvent {
        let address: IpAddr = self.target.address.ip();
        PingEvent::Summary {
            target: self.target.name.clone(),
            address,
            elapsed: self.run.elapsed(now),
            summary: self.run.summary(),
        }
    }
}

/// Whether the kernel keeps the error in the queue of the socket too.
fn is_queued(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}

fn unix_seconds() -> f64 {
    unix_time().as_secs_f64()
}
