//! The sockets that send the probes of a trace and receive what comes back.

pub mod icmp;
pub mod mark;
pub mod tcp;
pub mod udp;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::BorrowedFd,
    time::Duration,
};

use rustix::event::PollFlags;

use super::{
    options::{TraceMethod, TraceOptions},
    run::{Probe, TraceReply},
};
use crate::{
    clock::SessionClock,
    control::{ControlData, ErrorOrigin, QueuedError},
    echo_socket::SocketError,
    sockets::OpenSocket,
    wait::Ready,
};

/// Datagrams of a socket that are read before others have their turn.
pub(crate) const AT_ONCE: u32 = 64;

/// Something that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// An answer to a probe.
    Answer(TraceReply),
    /// The kernel of this machine refused a probe as too long.
    TooLong {
        /// The probe, if it is known.
        id: Option<u16>,
        /// The MTU of the link.
        mtu: u32,
    },
}

/// Sends probes and receives answers.
pub trait Prober {
    /// Begins a round: answers to earlier rounds are not taken for those to this one.
    fn begin_round(&mut self, nonce: u64);

    /// Sends a probe. Returns its answer if it is there at once.
    ///
    /// # Errors
    /// The kernel refuses the probe.
    fn send(&mut self, probe: Probe, clock: &SessionClock) -> io::Result<Option<Arrival>>;

    /// The sockets to wait for.
    fn sockets(&self) -> Vec<BorrowedFd<'_>>;

    /// The poll events to wait for.
    fn wanted(&self) -> PollFlags {
        PollFlags::IN
    }

    /// Reads what has arrived; `ready` is in the order of [`Prober::sockets`].
    fn receive(&mut self, ready: &[Ready], clock: &SessionClock, arrivals: &mut Vec<Arrival>);

    /// Closes what belongs to probes that are not waited for any more.
    fn keep(&mut self, _is_waiting: &dyn Fn(u16) -> bool) {}

    /// The MTU of the way to the target as the kernel knows it.
    fn mtu(&self) -> u16;
}

/// Opens the sockets of a trace.
///
/// # Errors
/// A socket can't be opened, or there is no way to the target.
pub(crate) fn open_prober<'a>(
    open: &'a dyn OpenSocket,
    target: IpAddr,
    scope: SocketAddr,
    options: &TraceOptions,
) -> Result<Box<dyn Prober + 'a>, SocketError> {
    let mut address = scope;
    address.set_ip(target);
    address.set_port(options.port);
    Ok(match options.method {
        TraceMethod::Udp => Box::new(udp::UdpProber::open(open, address, options)?),
        TraceMethod::Icmp => Box::new(icmp::IcmpProber::open(open, address, options)?),
        TraceMethod::Tcp => Box::new(tcp::TcpProber::new(open, address)),
    })
}

/// The answer in an entry of an error queue; `None` if it is none.
fn answer_in(
    error: QueuedError,
    id: Option<u16>,
    control: &ControlData,
    target: IpAddr,
    clock: &SessionClock,
) -> Option<Arrival> {
    if let Some((icmp, from)) = error.icmp() {
        return Some(Arrival::Answer(TraceReply {
            id,
            from: from.unwrap_or(target),
            at: clock.received(control.received),
            icmp: Some(icmp),
        }));
    }
    let too_long = error.origin == ErrorOrigin::Local && error.errno == libc::EMSGSIZE;
    too_long.then_some(Arrival::TooLong {
        id,
        mtu: error.info,
    })
}

/// The answer of the target itself.
fn reached(id: Option<u16>, from: IpAddr, at: Duration) -> Arrival {
    Arrival::Answer(TraceReply {
        id,
        from,
        at,
        icmp: None,
    })
}
