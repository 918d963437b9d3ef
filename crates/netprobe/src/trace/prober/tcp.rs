//! Probes by TCP without privileges: a connection that is being established, for each probe. The
//! kernel chooses a port for each, so every probe is a flow of its own.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    time::Duration,
};

use rubelet_host::datagram;
use rustix::{
    event::PollFlags,
    io::Errno,
    net::sockopt::{set_socket_linger, socket_error},
};

use super::{Arrival, Prober, answer_in, reached};
use crate::{
    clock::SessionClock,
    control::ControlData,
    packet::Family,
    sockets::{OpenSocket, Queue, SocketKind, enable_reports, set_ttl},
    trace::run::Probe,
    wait::Ready,
};

/// A probe waits at most this long: then the kernel sends its packet again, and an answer could be
/// to either.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The connections of a trace by TCP.
pub(crate) struct TcpProber<'a> {
    open: &'a dyn OpenSocket,
    target: SocketAddr,
    connections: Vec<(u16, OwnedFd)>,
    buffer: Vec<u8>,
}

impl<'a> TcpProber<'a> {
    /// A trace to this address and port.
    #[must_use]
    pub(crate) fn new(open: &'a dyn OpenSocket, target: SocketAddr) -> Self {
        Self {
            open,
            target,
            connections: Vec::new(),
            buffer: vec![0; 2048],
        }
    }

    /// The answer that a connection got; `None` if it says nothing about the probe.
    fn result(&mut self, at: usize, ready: Ready, clock: &SessionClock) -> Option<Arrival> {
        let (id, socket) = &self.connections[at];
        let (id, target) = (Some(*id), self.target.ip());
        let mut control = [0; 256];
        if ready.errors
            && let Ok(found) =
                datagram::receive(socket, &mut self.buffer, &mut control, Queue::Errors)
        {
            let control = ControlData::read(&control[..found.control]);
            return control
                .error
                .and_then(|error| answer_in(error, id, &control, target, clock));
        }
        match socket_error(socket) {
            // The answer to a closed port is one of the target.
            Ok(Err(Errno::CONNREFUSED)) => Some(reached(id, target, clock.now())),
            Ok(Ok(())) if ready.connected => Some(reached(id, target, clock.now())),
            _ => None,
        }
    }
}

impl Prober for TcpProber<'_> {
    fn begin_round(&mut self, _: u64) {
        self.connections.clear();
    }

    fn send(&mut self, probe: Probe, clock: &SessionClock) -> io::Result<Option<Arrival>> {
        let family = Family::of(self.target.ip());
        let socket = self.open.open(SocketKind::Tcp(family))?;
        enable_reports(&socket, family)?;
        set_ttl(&socket, family, probe.ttl)?;
        // A connection that is established is reset, and leaves nothing behind.
        set_socket_linger(&socket, Some(Duration::ZERO))?;
        match rustix::net::connect(&socket, &self.target) {
            Ok(()) | Err(Errno::CONNREFUSED) => {
                let at = clock.now();
                return Ok(Some(reached(Some(probe.id), self.target.ip(), at)));
            }
            Err(Errno::INPROGRESS | Errno::HOSTUNREACH) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.connections.push((probe.id, socket));
        Ok(None)
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        let sockets = self.connections.iter();
        sockets.map(|(_, socket)| socket.as_fd()).collect()
    }

    fn wanted(&self) -> PollFlags {
        PollFlags::OUT
    }

    fn receive(&mut self, ready: &[Ready], clock: &SessionClock, arrivals: &mut Vec<Arrival>) {
        // From the end, so that those before it keep their places.
        for (at, ready) in ready.iter().enumerate().rev() {
            if *ready == Ready::default() {
                continue;
            }
            arrivals.extend(self.result(at, *ready, clock));
            self.connections.swap_remove(at);
        }
    }

    fn keep(&mut self, is_waiting: &dyn Fn(u16) -> bool) {
        self.connections.retain(|(id, _)| is_waiting(*id));
    }

    fn mtu(&self) -> u16 {
        1500
    }
}
