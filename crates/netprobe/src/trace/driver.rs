//! Runs traces: sends what is due, reads what arrives, reports what it means.

use std::{io, net::SocketAddr, ops::ControlFlow, os::fd::BorrowedFd, time::Duration};

use rustix::{event::PollFlags, io::Errno};

use super::{
    event::TraceEvent,
    options::{TraceMethod, TraceOptions},
    prober::{Arrival, Prober, open_prober, tcp},
    run::{TraceAction, TraceRun},
    table::TraceTable,
};
use crate::{
    clock::{SessionClock, random},
    echo_socket::SocketError,
    sockets::OpenSocket,
    wait::wait,
};

/// Time for a full queue of this machine to drain.
const POSTPONE: Duration = Duration::from_millis(1);

/// A target: its name, and its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceTarget {
    /// The target, as it was given.
    pub name: String,
    /// Its address; the port is that of the options.
    pub address: SocketAddr,
}

/// Why a trace can't be run.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No socket for the target.
    #[error("{target}")]
    Socket {
        /// The target.
        target: String,
        /// Why.
        source: SocketError,
    },
    /// The kernel refuses to send.
    #[error("cannot send a probe to {target}")]
    Send {
        /// The target.
        target: String,
        /// Why.
        source: io::Error,
    },
    /// Waiting failed.
    #[error("cannot wait for a socket")]
    Wait(#[source] io::Error),
}

/// Receives reports; breaks to end the trace.
pub type TraceReporter<'a> = dyn FnMut(TraceEvent) -> ControlFlow<()> + 'a;

/// Traces the way to the target until it is known, `stop` is readable or closed, or `report` breaks.
/// Blocks the thread.
///
/// # Errors
/// A socket can't be opened, or the kernel refuses to send.
pub fn trace(
    target: &TraceTarget,
    options: &TraceOptions,
    open: &dyn OpenSocket,
    stop: BorrowedFd<'_>,
    report: &mut TraceReporter<'_>,
) -> Result<(), TraceError> {
    let mut options = options.clone().bounded();
    if options.method == TraceMethod::Tcp {
        options.wait = options.wait.min(tcp::LONGEST_WAIT);
    }
    let address = target.address;
    let prober = open_prober(open, address.ip(), address, &options).map_err(|source| {
        TraceError::Socket {
            target: target.name.clone(),
            source,
        }
    })?;
    let mut session = TraceSession {
        target,
        clock: SessionClock::start(),
        stop,
        longest: prober.mtu(),
        prober,
        options,
    };
    let start = TraceEvent::Start {
        target: target.name.clone(),
        address: address.ip(),
        method: session.options.method,
        max_hops: session.options.max,
        length: match session.options.mtu {
            true => session.longest,
            false => session.options.length,
        },
    };
    if report(start).is_break() {
        return Ok(());
    }
    match session.options.rounds {
        None => session.once(report),
        Some(rounds) => session.repeated(rounds, report),
    }
}

struct TraceSession<'a> {
    target: &'a TraceTarget,
    options: TraceOptions,
    clock: SessionClock,
    stop: BorrowedFd<'a>,
    prober: Box<dyn Prober + 'a>,
    longest: u16,
}

impl TraceSession<'_> {
    fn once(&mut self, report: &mut TraceReporter<'_>) -> Result<(), TraceError> {
        let mut run = TraceRun::new(self.options.clone(), self.longest);
        let ended = self.round(&mut run, &mut |run| {
            while let Some(hop) = run.take_hop() {
                report(TraceEvent::Hop(hop))?;
            }
            ControlFlow::Continue(())
        })?;
        if ended.is_continue() {
            let _ = report(TraceEvent::End {
                reached: run.reached(),
                paths: run.paths(),
            });
        }
        Ok(())
    }

    fn repeated(&mut self, rounds: u64, report: &mut TraceReporter<'_>) -> Result<(), TraceError> {
        let mut table = TraceTable::default();
        let mut options = self.options.clone();
        // A lost probe must not delay the rounds that show it.
        options.wait = options.wait.min(options.interval.max(tcp::LONGEST_WAIT));
        let mut round = 0;
        let mut reached = false;
        while rounds == 0 || round < rounds {
            let next = self.clock.now() + options.interval;
            let mut run = TraceRun::new(options.clone(), self.longest);
            let ended = self.round(&mut run, &mut |_| ControlFlow::Continue(()))?;
            while let Some(hop) = run.take_hop() {
                table.add(&hop);
            }
            if ended.is_break() {
                break;
            }
            round += 1;
            if let Some(distance) = run.distance() {
                reached = true;
                // What lies behind the target needs no probes. One more hop finds a way that became
                // longer.
                options.max = distance.saturating_add(1).min(self.options.max);
                table.truncate(distance);
            }
            let event = TraceEvent::Round {
                round,
                hops: table.summary(),
            };
            if report(event).is_break() {
                return Ok(());
            }
            let last = rounds != 0 && round == rounds;
            let pause = next.saturating_sub(self.clock.now());
            if last || self.pause(pause)?.is_break() {
                break;
            }
        }
        let _ = report(TraceEvent::End {
            reached,
            paths: Vec::new(),
        });
        Ok(())
    }

    /// Runs a trace until it is done. Breaks if it is to stop.
    fn round(
        &mut self,
        run: &mut TraceRun,
        progress: &mut dyn FnMut(&mut TraceRun) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, TraceError> {
        self.prober.begin_round(random());
        let mut arrivals = Vec::new();
        // All that had arrived by then is read: only what is late then is late, and not what waits in
        // a socket while this thread does not run.
        let mut read_until = self.clock.now();
        loop {
            let timeout = match run.next(read_until) {
                TraceAction::Send(probe) => {
                    let now = self.clock.now();
                    // An answer may be there before the call returns.
                    run.on_sent(probe.id, now);
                    match self.prober.send(probe, &self.clock) {
                        Ok(arrival) => arrivals.extend(arrival),
                        Err(error) => self.refused(run, probe.id, error)?,
                    }
                    Duration::ZERO
                }
                TraceAction::Wait(until) => until.saturating_sub(self.clock.now()),
                TraceAction::Done => return Ok(progress(run)),
            };
            let sockets = self.prober.sockets();
            read_until = self.clock.now();
            let ready = wait(self.stop, &sockets, self.prober.wanted(), timeout);
            let Some(ready) = ready.map_err(TraceError::Wait)? else {
                // What is known is reported.
                let _ = progress(run);
                return Ok(ControlFlow::Break(()));
            };
            self.prober.receive(&ready, &self.clock, &mut arrivals);
            for arrival in arrivals.drain(..) {
                match arrival {
                    Arrival::Answer(answer) => run.on_answer(answer),
                    Arrival::TooLong { id, mtu } => run.on_too_long(id, mtu),
                }
            }
            self.prober.keep(&|id| run.is_waiting(id));
            if progress(run).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// A probe could not be sent: now, or for good.
    fn refused(&self, run: &mut TraceRun, id: u16, error: io::Error) -> Result<(), TraceError> {
        match Errno::from_io_error(&error) {
            Some(Errno::NOBUFS | Errno::AGAIN) => {
                run.postpone(id, self.clock.now() + POSTPONE);
                Ok(())
            }
            _ => Err(TraceError::Send {
                target: self.target.name.clone(),
                source: error,
            }),
        }
    }

    /// Waits, or breaks if it is to stop.
    fn pause(&self, timeout: Duration) -> Result<ControlFlow<()>, TraceError> {
        let ready = wait(self.stop, &[], PollFlags::IN, timeout).map_err(TraceError::Wait)?;
        Ok(match ready {
            Some(_) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        })
    }
}
