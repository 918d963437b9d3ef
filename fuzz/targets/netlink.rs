//! Answers over rtnetlink, from the first byte of a datagram to links, addresses, routes, neighbours.
//!
//! The first byte chooses the question. What follows are datagrams, each with its length in two bytes.

#![no_main]

use std::os::fd::OwnedFd;

use libfuzzer_sys::fuzz_target;
use rubelet_host::netlink::{Changes, RouteSocket};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, send, shutdown};

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let (kernel, agent) = pair();
    answer(&kernel, rest);
    let mut socket = RouteSocket::from(agent);
    // The header of a message and that of its family take at least 24 bytes.
    let most = rest.len() / 24;
    match choice % 6 {
        0 => assert!(socket.links().map_or(0, |found| found.len()) <= most),
        1 => assert!(socket.addresses().map_or(0, |found| found.len()) <= most),
        2 => assert!(socket.routes().map_or(0, |found| found.len()) <= most),
        3 => assert!(socket.neighbours().map_or(0, |found| found.len()) <= most),
        4 => {
            let _ = socket.link("eth0");
        }
        _ => {
            let mut changes = Changes::default();
            changes.set_up("eth0").set_group("eth0", 7);
            if let Err(error) = socket.apply(changes, || "switch it on".to_owned()) {
                assert_ne!(error.errno(), Some(0), "{error}");
            }
        }
    }
});

/// Two ends of a socket that keeps the borders of datagrams.
fn pair() -> (OwnedFd, OwnedFd) {
    rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .expect("a pair of sockets can be made")
}

/// Sends the datagrams, and nothing more after them.
fn answer(kernel: &OwnedFd, mut rest: &[u8]) {
    while let Some((length, more)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(more.len());
        let (datagram, more) = more.split_at(length);
        rest = more;
        if datagram.is_empty() || send(kernel, datagram, SendFlags::DONTWAIT).is_err() {
            break;
        }
    }
    shutdown(kernel, Shutdown::Write).expect("the socket is open");
}
