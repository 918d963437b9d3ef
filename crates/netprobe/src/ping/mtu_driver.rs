//! Runs the search for a path MTU.

use std::{
    net::IpAddr,
    ops::ControlFlow,
    os::fd::{AsFd as _, BorrowedFd},
    time::Duration,
};

use rustix::event::PollFlags;

use super::{
    driver::{PingError, PingTarget},
    mtu::{MtuEvent, MtuNext, MtuResult, MtuSearch},
    options::Fragmentation,
    run::sequence_of,
};
use crate::{
    clock::{SessionClock, random},
    control::ErrorOrigin,
    echo_socket::{EchoError, EchoSocket},
    icmp_error::IcmpMeaning,
    packet::ECHO_HEADER,
    sockets::OpenSocket,
    stamp::{SessionKey, Stamp},
    wait::wait,
};

/// Datagrams that are read before the clock is looked at again.
const AT_ONCE: u32 = 64;

/// Receives reports; breaks to end the search.
pub type MtuReporter<'a> = dyn FnMut(MtuEvent) -> ControlFlow<()> + 'a;

/// Searches the path MTU to the target. A packet without an answer after `timeout` is sent again, and
/// is too long after three times. Blocks the thread.
///
/// # Errors
/// A socket can't be opened, or waiting fails.
pub fn search_mtu(
    target: &PingTarget,
    timeout: Duration,
    open: &dyn OpenSocket,
    stop: BorrowedFd<'_>,
    report: &mut MtuReporter<'_>,
) -> Result<(), PingError> {
    let fragmentation = Some(Fragmentation::Probe);
    let socket = EchoSocket::open(open, target.address, None, fragmentation).map_err(|source| {
        PingError::Socket {
            target: target.name.clone(),
            source,
        }
    })?;
    let mut search = MtuSearch::new(socket.family());
    let mut prober = LengthProber {
        socket,
        clock: SessionClock::start(),
        key: SessionKey::new(random()),
        index: 0,
        timeout,
        stop,
    };
    loop {
        let found = match search.next() {
            MtuNext::Try(length) => {
                let Some(tried) = prober.probe(length)? else {
                    return Ok(());
                };
                search.on_result(length, tried.result);
                let event = MtuEvent::Tried {
                    target: target.name.clone(),
                    length,
                    result: tried.result,
                    from: tried.from,
                    rtt: tried.rtt,
                };
                if report(event).is_break() {
                    return Ok(());
                }
                continue;
            }
            MtuNext::Found(found) => Some(found),
            MtuNext::Unanswered => None,
        };
        let _ = report(MtuEvent::PathMtu {
            target: target.name.clone(),
            address: target.address.ip(),
            found,
        });
        return Ok(());
    }
}

/// The result of one packet.
struct Tried {
    result: MtuResult,
    from: Option<IpAddr>,
    rtt: Option<Duration>,
}

struct LengthProber<'a> {
    socket: EchoSocket,
    clock: SessionClock,
    key: SessionKey,
    index: u64,
    timeout: Duration,
    stop: BorrowedFd<'a>,
}

impl LengthProber<'_> {
    /// Sends a packet of this length and waits for what comes of it; `None` if it is to stop.
    fn probe(&mut self, length: usize) -> Result<Option<Tried>, PingError> {
        self.index += 1;
        let size = length.saturating_sub(self.socket.family().ip_header() + ECHO_HEADER);
        let sent = self.clock.now();
        let mut data = Vec::new();
        let stamp = Stamp {
            index: self.index,
            sent,
        };
        self.key.write(stamp, size, &mut data);
        // What the kernel refuses is in the queue of errors, or counts as not answered.
        let _ = self.socket.send(sequence_of(self.index), &data);
        loop {
            if let Some(tried) = self.read(size) {
                return Ok(Some(tried));
            }
            let left = (sent + self.timeout).saturating_sub(self.clock.now());
            if left.is_zero() {
                return Ok(Some(Tried {
                    result: MtuResult::Silence,
                    from: None,
                    rtt: None,
                }));
            }
            let sockets = [self.socket.as_fd()];
            let ready = wait(self.stop, &sockets, PollFlags::IN, left).map_err(PingError::Wait)?;
            if ready.is_none() {
                return Ok(None);
            }
        }
    }

    /// Looks for what came of the last packet.
    fn read(&mut self, size: usize) -> Option<Tried> {
        let mut patience = AT_ONCE;
        while let Some(error) = self.socket.receive_error(&mut patience) {
            if let Some(result) = too_long(&error, sequence_of(self.index)) {
                return Some(Tried {
                    result,
                    from: error.from,
                    rtt: None,
                });
            }
        }
        // What else is pending would wake this thread again and again.
        let _ = rustix::net::sockopt::socket_error(&self.socket);
        let mut patience = AT_ONCE;
        while let Some(received) = self.socket.receive(&mut patience) {
            let at = self.clock.received(received.control.received);
            if let Ok(Some(stamp)) = self.key.read(received.reply.data, size)
                && stamp.index == self.index
            {
                return Some(Tried {
                    result: MtuResult::Answered,
                    from: Some(received.from),
                    rtt: Some(at.saturating_sub(stamp.sent)),
                });
            }
        }
        None
    }
}

/// Whether an error says that the packet with this sequence number is too long.
fn too_long(error: &EchoError, sequence: u16) -> Option<MtuResult> {
    let mtu = usize::try_from(error.error.info).unwrap_or(usize::MAX);
    match (error.error.origin, error.icmp) {
        (ErrorOrigin::Local, _) if error.error.errno == libc::EMSGSIZE => {
            Some(MtuResult::TooLongHere(mtu))
        }
        (_, Some(icmp)) if icmp.meaning() == IcmpMeaning::TooBig => {
            (error.sequence == Some(sequence)).then_some(MtuResult::TooLong(mtu))
        }
        _ => None,
    }
}
