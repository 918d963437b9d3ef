//! Probes by ICMP echo requests: one socket for each flow. Some routers take the checksum for a part
//! of the flow, so it is the same for all probes: a word in the data makes up for the sequence number.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd as _, BorrowedFd},
};

use rustix::io::Errno;

use super::{AT_ONCE, Arrival, Prober, answer_in, reached};
use crate::{
    clock::SessionClock,
    echo_socket::{EchoSocket, SocketError},
    packet::{ECHO_HEADER, Family},
    ping::options::Fragmentation,
    sockets::{OpenSocket, set_ttl},
    trace::{options::TraceOptions, run::Probe},
    wait::Ready,
};

/// The nonce and the word that makes up for the sequence number.
const LEAST_DATA: usize = 10;

/// The sockets of a trace by ICMP.
pub(crate) struct IcmpProber {
    sockets: Vec<EchoSocket>,
    family: Family,
    target: IpAddr,
    nonce: u64,
    data: Vec<u8>,
}

impl IcmpProber {
    /// Opens a socket for each flow.
    ///
    /// # Errors
    /// No kind of socket is allowed, or there is no way to the target.
    pub(crate) fn open(
        open: &dyn OpenSocket,
        target: SocketAddr,
        options: &TraceOptions,
    ) -> Result<Self, SocketError> {
        let fragmentation = match options.mtu {
            true => Fragmentation::Probe,
            false => Fragmentation::Dont,
        };
        let socket = || EchoSocket::open(open, target, None, Some(fragmentation));
        Ok(Self {
            sockets: (0..options.flows)
                .map(|_| socket())
                .collect::<Result<_, _>>()?,
            family: Family::of(target.ip()),
            target: target.ip(),
            nonce: 0,
            data: Vec::new(),
        })
    }

    /// The sequence number of a probe; those of a round follow a random one.
    fn sequence(nonce: u64, id: u16) -> u16 {
        u16::try_from(nonce & 0xffff)
            .unwrap_or_default()
            .wrapping_add(id)
    }

    fn id(nonce: u64, sequence: u16) -> u16 {
        sequence.wrapping_sub(Self::sequence(nonce, 0))
    }
}

fn write_data(nonce: u64, sequence: u16, size: usize, data: &mut Vec<u8>) {
    data.clear();
    data.extend(nonce.to_be_bytes());
    data.extend((!sequence).to_be_bytes());
    data.resize(size.max(LEAST_DATA), b'@');
}

fn is_data(nonce: u64, sequence: u16, data: &[u8]) -> bool {
    data.strip_prefix(&nonce.to_be_bytes())
        .is_some_and(|rest| rest.starts_with(&(!sequence).to_be_bytes()))
}

impl Prober for IcmpProber {
    fn begin_round(&mut self, nonce: u64) {
        self.nonce = nonce;
    }

    fn send(&mut self, probe: Probe, _: &SessionClock) -> io::Result<Option<Arrival>> {
        let socket = &mut self.sockets[usize::from(probe.flow)];
        set_ttl(&*socket, self.family, probe.ttl)?;
        let sequence = Self::sequence(self.nonce, probe.id);
        let headers = self.family.ip_header() + ECHO_HEADER;
        let size = usize::from(probe.length).saturating_sub(headers);
        write_data(self.nonce, sequence, size, &mut self.data);
        match socket.send(sequence, &self.data) {
            // The queue of errors has the MTU.
            Err(error) if Errno::from_io_error(&error) != Some(Errno::MSGSIZE) => Err(error),
            _ => Ok(None),
        }
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().map(|socket| socket.as_fd()).collect()
    }

    fn receive(&mut self, ready: &[Ready], clock: &SessionClock, arrivals: &mut Vec<Arrival>) {
        let (nonce, target) = (self.nonce, self.target);
        for (socket, ready) in self.sockets.iter_mut().zip(ready) {
            let mut patience = AT_ONCE;
            while ready.errors
                && let Some(error) = socket.receive_error(&mut patience)
            {
                let id = error.sequence.map(|sequence| Self::id(nonce, sequence));
                let answer = answer_in(error.error, id, &error.control, target, clock);
                arrivals.extend(answer);
            }
            if ready.errors {
                // What else is pending would wake this thread again and again.
                let _ = rustix::net::sockopt::socket_error(&*socket);
            }
            let mut patience = AT_ONCE;
            while ready.received
                && let Some(received) = socket.receive(&mut patience)
            {
                let reply = received.reply;
                if is_data(nonce, reply.sequence, reply.data) {
                    let id = Some(Self::id(nonce, reply.sequence));
                    let at = clock.received(received.control.received);
                    arrivals.push(reached(id, received.from, at));
                }
            }
        }
    }

    fn mtu(&self) -> u16 {
        // The kernel refuses what is too long, and says which length is not.
        u16::MAX
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packet::write_echo_request;

    proptest! {
        #[test]
        fn all_probes_of_a_flow_have_one_checksum(
            nonce: u64, first: u16, second: u16, flow: u16, size in 0_usize..60,
        ) {
            let sums = [first, second].map(|sequence| {
                let (mut data, mut message) = (Vec::new(), Vec::new());
                write_data(nonce, sequence, size, &mut data);
                assert!(is_data(nonce, sequence, &data));
                assert!(!is_data(!nonce, sequence, &data));
                write_echo_request(Family::V4, flow, sequence, &data, &mut message);
                [message[2], message[3]]
            });
            prop_assert_eq!(sums[0], sums[1]);
        }

        #[test]
        fn a_sequence_number_names_its_probe(nonce: u64, id: u16) {
            prop_assert_eq!(IcmpProber::id(nonce, IcmpProber::sequence(nonce, id)), id);
        }
    }
}
