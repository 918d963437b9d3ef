//! Questions to a nameserver by UDP.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd as _, BorrowedFd},
    time::Duration,
};

use rubelet_base::error_text;
use rustix::{
    event::PollFlags,
    io::Errno,
    net::{RecvFlags, recv},
};
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE, rdata::RData};

use crate::{
    clock::{SessionClock, random},
    packet::Family,
    sockets::{OpenSocket, SocketKind, send_past_errors},
    wait::wait,
};

/// The port of nameservers.
const PORT: u16 = 53;
/// Number of tries of a question.
const TRIES: u32 = 2;
/// The longest answer without EDNS (RFC 1035).
const LONGEST: usize = 512;
/// Datagrams that are looked at for one question: others than the answer are forged or late.
const MOST_DATAGRAMS: u32 = 64;

/// The result of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsAnswer {
    /// The name has these addresses.
    Addresses(Vec<IpAddr>),
    /// An answer without an address: the code by its name (`NXDOMAIN`), or
    /// `without an address`.
    Code(String),
    /// An error of the network or the host: `Connection refused`.
    Error(String),
    /// Nothing.
    Silence,
}

/// Asks a nameserver for the addresses of a family that a name has. `None` if it is to stop. Blocks the
/// thread.
///
/// # Errors
/// No socket can be opened, or waiting fails; the name can't be one.
pub fn ask(
    server: IpAddr,
    name: &str,
    family: Family,
    timeout: Duration,
    open: &dyn OpenSocket,
    stop: BorrowedFd<'_>,
) -> io::Result<Option<DnsAnswer>> {
    let id = u16::try_from(random() & 0xffff).unwrap_or_default();
    let question = question(id, name, family)?;
    let socket = open.open(SocketKind::Udp(Family::of(server)))?;
    let failed = |errno: Errno| Ok(Some(DnsAnswer::Error(error_text(&errno.into()))));
    if let Err(errno) = rustix::net::connect(&socket, &SocketAddr::new(server, PORT)) {
        return failed(errno);
    }
    let clock = SessionClock::start();
    let mut patience = MOST_DATAGRAMS;
    for _ in 0..TRIES {
        if let Err(errno) = send_past_errors(&socket, &question) {
            return failed(errno);
        }
        let until = clock.now() + timeout;
        loop {
            let left = until.saturating_sub(clock.now());
            if left.is_zero() || patience == 0 {
                break;
            }
            if wait(stop, &[socket.as_fd()], PollFlags::IN, left)?.is_none() {
                return Ok(None);
            }
            let mut buffer = [0; LONGEST];
            match recv(&socket, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    patience -= 1;
                    if let Some(answer) = read(&buffer[..length], id, name) {
                        return Ok(Some(answer));
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return failed(errno),
            }
        }
    }
    Ok(Some(DnsAnswer::Silence))
}

/// Whether DNS can have such a name; it may end with a dot.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    !name.split('.').any(str::is_empty) && Name::new(name).is_ok()
}

fn invalid(error: simple_dns::SimpleDnsError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

fn question(id: u16, name: &str, family: Family) -> io::Result<Vec<u8>> {
    let kind = match family {
        Family::V4 => TYPE::A,
        Family::V6 => TYPE::AAAA,
    };
    let name = Name::new(name).map_err(invalid)?;
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet
        .questions
        .push(Question::new(name, kind.into(), CLASS::IN.into(), false));
    packet.build_bytes_vec().map_err(invalid)
}

/// The answer to the question with this number and name; `None` for anything else.
#[must_use]
pub fn read(bytes: &[u8], id: u16, name: &str) -> Option<DnsAnswer> {
    let packet = Packet::parse(bytes).ok()?;
    if packet.id() != id || !packet.has_flags(PacketFlag::RESPONSE) {
        return None;
    }
    let [question] = packet.questions.as_slice() else {
        return None;
    };
    if !question.qname.to_string().eq_ignore_ascii_case(name) {
        return None;
    }
    let addresses: Vec<IpAddr> = packet
        .answers
        .iter()
        .filter_map(|record| match &record.rdata {
            RData::A(a) => Some(IpAddr::V4(a.address.into())),
            RData::AAAA(aaaa) => Some(IpAddr::V6(aaaa.address.into())),
            _ => None,
        })
        .collect();
    Some(match (packet.rcode(), addresses.is_empty()) {
        (RCODE::NoError, false) => DnsAnswer::Addresses(addresses),
        (RCODE::NoError, true) => DnsAnswer::Code("without an address".to_owned()),
        (code, _) => DnsAnswer::Code(code_name(code)),
    })
}

/// The names of response codes as `dig` shows them.
fn code_name(code: RCODE) -> String {
    match code {
        RCODE::FormatError => "FORMERR".to_owned(),
        RCODE::ServerFailure => "SERVFAIL".to_owned(),
        RCODE::NameError => "NXDOMAIN".to_owned(),
        RCODE::NotImplemented => "NOTIMP".to_owned(),
        RCODE::Refused => "REFUSED".to_owned(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests;
