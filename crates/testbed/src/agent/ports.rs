//! Ports for programs that tests start, a different one for each.

use std::{
    net::{IpAddr, TcpListener},
    ops::Range,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result};

/// Ports below those that the kernel gives to connections by itself.
const FIRST: u16 = 20_000;
/// Ports that one process reserves at a time.
const BLOCK: u16 = 20;
const BLOCKS: u16 = 500;

/// What is left of the ports that this process reserved.
struct Ports {
    left: Range<u16>,
    /// Until the process ends, these keep others away, also from the port of a program that is not started yet, or is
    /// started again.
    reservations: Vec<UnixDatagram>,
}

static PORTS: Mutex<Ports> = Mutex::new(Ports {
    left: 0..0,
    reservations: Vec::new(),
});

/// An unused port of this address, each time another one, which no other process of the tests gets before this one
/// ends.
///
/// # Errors
/// All ports are taken.
pub fn free_port(ip: IpAddr) -> Result<u16> {
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        // Something else may listen on one.
        let is_free = |port: &u16| TcpListener::bind((ip, *port)).is_ok();
        if let Some(port) = ports.left.find(is_free) {
            return Ok(port);
        }
        let (left, reservation) = reserve().with_context(|| format!("no port is free on {ip}"))?;
        ports.left = left;
        ports.reservations.push(reservation);
    }
}

/// Reserves ports by a name that the kernel has once, and gives back when the process ends.
fn reserve() -> Option<(Range<u16>, UnixDatagram)> {
    // Processes begin at different ones: somebody may still ask for what the last one had there.
    let own = std::process::id() % u32::from(BLOCKS);
    (0..BLOCKS).find_map(|number| {
        let block = u16::try_from((own + u32::from(number)) % u32::from(BLOCKS)).ok()?;
        let name = format!("rubelet-test-ports-{block}");
        let address = SocketAddr::from_abstract_name(name).ok()?;
        let reservation = UnixDatagram::bind_addr(&address).ok()?;
        let first = FIRST + block * BLOCK;
        Some((first..first + BLOCK, reservation))
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_port_is_given_once_and_never_one_that_is_reserved() {
        let ip = Ipv4Addr::LOCALHOST.into();
        let (others, _reservation) = reserve().unwrap();
        let mut given: Vec<u16> = (0..2 * BLOCK).map(|_| free_port(ip).unwrap()).collect();
        assert!(given.iter().all(|port| !others.contains(port)));
        let all = given.len();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), all);
    }
}
