//! Probes by UDP without privileges: one connected socket for each flow, so that all probes of a flow
//! have the same addresses and ports. They differ in their TTLs and in their data, which routers that
//! balance load do not look at.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use rubelet_host::datagram;
use rustix::{
    io::Errno,
    net::sockopt::{ip_mtu, ipv6_mtu},
};

use super::{
    AT_ONCE, Arrival, Prober, answer_in,
    mark::{self, QuotedProbe},
    reached,
};
use crate::{
    clock::SessionClock,
    control::ControlData,
    echo_socket::SocketError,
    packet::Family,
    ping::options::Fragmentation,
    sockets::{
        OpenSocket, Queue, SocketKind, enable_reports, send_past_errors, set_fragmentation, set_ttl,
    },
    trace::{options::TraceOptions, run::Probe},
    wait::Ready,
};

/// The length of a UDP header.
const UDP_HEADER: usize = 8;

/// The sockets of a trace by UDP.
pub(crate) struct UdpProber {
    sockets: Vec<OwnedFd>,
    family: Family,
    target: IpAddr,
    nonce: u64,
    data: Vec<u8>,
    buffer: Vec<u8>,
}

impl UdpProber {
    /// Opens a socket for each flow.
    ///
    /// # Errors
    /// A socket can't be opened, or there is no way to the target.
    pub(crate) fn open(
        open: &dyn OpenSocket,
        target: SocketAddr,
        options: &TraceOptions,
    ) -> Result<Self, SocketError> {
        let family = Family::of(target.ip());
        let option = |what| move |error| SocketError::Option(what, error);
        let socket = || {
            let socket = open
                .open(SocketKind::Udp(family))
                .map_err(SocketError::Open)?;
            enable_reports(&socket, family).map_err(option("the error queue"))?;
            let fragmentation = match options.mtu {
                true => Fragmentation::Probe,
                false => Fragmentation::Dont,
            };
            set_fragmentation(&socket, family, fragmentation)
                .map_err(option("path MTU discovery"))?;
            rustix::net::connect(&socket, &target)
                .map_err(|errno| SocketError::Connect(target.ip(), errno.into()))?;
            Ok(socket)
        };
        Ok(Self {
            sockets: (0..options.flows)
                .map(|_| socket())
                .collect::<Result<_, _>>()?,
            family,
            target: target.ip(),
            nonce: 0,
            data: Vec::new(),
            buffer: vec![0; 2048],
        })
    }

    /// The next datagram of a queue without waiting: whose it is, and what the kernel reports with it.
    fn receive_one(&mut self, flow: usize, queue: Queue) -> io::Result<(QuotedProbe, ControlData)> {
        let mut control = [0; 256];
        let socket = &self.sockets[flow];
        let found = datagram::receive(socket, &mut self.buffer, &mut control, queue)?;
        let quoted = mark::read(self.nonce, &self.buffer[..found.length]);
        Ok((quoted, ControlData::read(&control[..found.control])))
    }

    fn read_errors(&mut self, flow: usize, clock: &SessionClock, arrivals: &mut Vec<Arrival>) {
        for _ in 0..AT_ONCE {
            let Ok((quoted, control)) = self.receive_one(flow, Queue::Errors) else {
                break;
            };
            let id = match quoted {
                QuotedProbe::Probe(id) => Some(id),
                QuotedProbe::TooShort => None,
                QuotedProbe::Foreign => continue,
            };
            let answer = control
                .error
                .and_then(|error| answer_in(error, id, &control, self.target, clock));
            arrivals.extend(answer);
        }
    }

    /// A service may listen on the port, and answer.
    fn read_datagrams(&mut self, flow: usize, clock: &SessionClock, arrivals: &mut Vec<Arrival>) {
        for _ in 0..AT_ONCE {
            match self.receive_one(flow, Queue::Received) {
                Ok((quoted, control)) => {
                    let id = match quoted {
                        QuotedProbe::Probe(id) => Some(id),
                        QuotedProbe::TooShort | QuotedProbe::Foreign => None,
                    };
                    let at = clock.received(control.received);
                    arrivals.push(reached(id, self.target, at));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The error that a probe left behind; it is in the queue too.
                Err(_) => {}
            }
        }
    }
}

impl Prober for UdpProber {
    fn begin_round(&mut self, nonce: u64) {
        self.nonce = nonce;
    }

    fn send(&mut self, probe: Probe, _: &SessionClock) -> io::Result<Option<Arrival>> {
        let socket = &self.sockets[usize::from(probe.flow)];
        set_ttl(socket, self.family, probe.ttl)?;
        let headers = self.family.ip_header() + UDP_HEADER;
        let size = usize::from(probe.length).saturating_sub(headers);
        mark::write(self.nonce, probe.id, size, &mut self.data);
        match send_past_errors(socket, &self.data) {
            // The queue of errors has the MTU.
            Ok(()) | Err(Errno::MSGSIZE) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(None)
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().map(|socket| socket.as_fd()).collect()
    }

    fn receive(&mut self, ready: &[Ready], clock: &SessionClock, arrivals: &mut Vec<Arrival>) {
        for (flow, ready) in ready.iter().enumerate() {
            if ready.errors {
                self.read_errors(flow, clock, arrivals);
                // What else is pending would wake this thread again and again.
                let _ = rustix::net::sockopt::socket_error(&self.sockets[flow]);
            }
            if ready.received {
                self.read_datagrams(flow, clock, arrivals);
            }
        }
    }

    fn mtu(&self) -> u16 {
        let mtu = self.sockets.first().and_then(|socket| match self.family {
            Family::V4 => ip_mtu(socket).ok(),
            Family::V6 => ipv6_mtu(socket).ok(),
        });
        mtu.map_or(1500, |mtu| u16::try_from(mtu).unwrap_or(u16::MAX))
    }
}
