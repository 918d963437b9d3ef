//! Opens TCP connections, with Go's error messages.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use tokio::{
    net::TcpSocket,
    time::{Instant, timeout},
};

use crate::{report::ProbeFailure, socket::Socket, words};

/// Number of attempts if a connection connected to itself, or found no free port.
const TRIES: usize = 3;

/// Connects to `host`, an address or a name. Has no timeout itself; `deadline` only determines the
/// share of time for each address of a name.
///
/// # Errors
/// Refused, unreachable or unknown hosts have failed. A shortage of sockets or ports on this
/// machine says nothing about the target and is an error of the attempt.
pub(crate) async fn dial(host: &str, port: u16, deadline: Instant) -> Result<Socket, ProbeFailure> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return connect(SocketAddr::new(address, port)).await;
    }
    let addresses = lookup(host, port).await?;
    let mut left = addresses.len() as u32;
    let mut first = None;
    for address in addresses {
        let outcome = if left == 1 {
            connect(address).await
        } else {
            let share = deadline.duration_since(Instant::now()) / left;
            timeout(share, connect(address)).await.unwrap_or_else(|_| {
                let text = format!("dial tcp {address}: i/o timeout");
                Err(ProbeFailure::failed(text))
            })
        };
        left -= 1;
        match outcome {
            Ok(socket) => return Ok(socket),
            Err(failure) => first = first.or(Some(failure)),
        }
    }
    Err(first.unwrap_or_else(|| no_such_host(host)))
}

async fn lookup(host: &str, port: u16) -> Result<Vec<SocketAddr>, ProbeFailure> {
    match tokio::net::lookup_host((host, port)).await {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => {
            let text = error.to_string();
            // getaddrinfo's messages for a name without addresses.
            if text.ends_with("not known") || text.contains("No address associated") {
                return Err(no_such_host(host));
            }
            let reason = text.rsplit(": ").next().unwrap_or_default();
            Err(ProbeFailure::failed(format!(
                "dial tcp: lookup {host}: {}",
                reason.to_ascii_lowercase()
            )))
        }
    }
}

fn no_such_host(host: &str) -> ProbeFailure {
    ProbeFailure::failed(format!("dial tcp: lookup {host}: no such host"))
}

async fn connect(address: SocketAddr) -> Result<Socket, ProbeFailure> {
    let mut last = io::Error::from_raw_os_error(libc::ECONNREFUSED);
    for _ in 0..TRIES {
        let socket = open(address).map_err(|error| failure(address, "socket", &error))?;
        match socket.connect(address).await {
            Ok(stream) => {
                let local = stream
                    .local_addr()
                    .map_err(|error| failure(address, "getsockname", &error))?;
                // The kernel can assign an unused local port to the very socket that connects to
                // it, and then the socket connects to itself.
                if local != address {
                    return Ok(Socket::new(stream, local, address));
                }
                last = io::Error::from_raw_os_error(libc::ECONNREFUSED);
            }
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => last = error,
            Err(error) => return Err(failure(address, "connect", &error)),
        }
    }
    Err(failure(address, "connect", &last))
}

fn open(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_nodelay(true)?;
    // Linger 0: close(2) sends RST, so that neither side keeps the connection in TIME_WAIT.
    socket.set_zero_linger()?;
    Ok(socket)
}

fn failure(address: SocketAddr, call: &str, error: &io::Error) -> ProbeFailure {
    let text = format!("dial tcp {address}: {call}: {}", words::of(error));
    if is_local_shortage(error) {
        ProbeFailure::errored(text)
    } else {
        ProbeFailure::failed(text)
    }
}

/// Whether this machine, not the target, is the cause: no descriptors, no memory, no free ports.
fn is_local_shortage(error: &io::Error) -> bool {
    const SHORTAGES: [i32; 6] = [
        libc::EMFILE,
        libc::ENFILE,
        libc::ENOBUFS,
        libc::ENOMEM,
        libc::EADDRNOTAVAIL,
        libc::EAGAIN,
    ];
    error
        .raw_os_error()
        .is_some_and(|number| SHORTAGES.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ProbeOutcome;

    #[test]
    fn want_on_this_machine_says_nothing_of_the_target() {
        let address = SocketAddr::from(([10, 0, 0, 1], 80));
        for (call, number, verdict, text) in [
            (
                "socket",
                libc::EMFILE,
                ProbeOutcome::Errored,
                "dial tcp 10.0.0.1:80: socket: too many open files",
            ),
            (
                "connect",
                libc::EADDRNOTAVAIL,
                ProbeOutcome::Errored,
                "dial tcp 10.0.0.1:80: connect: cannot assign requested address",
            ),
            (
                "connect",
                libc::EHOSTUNREACH,
                ProbeOutcome::Failed,
                "dial tcp 10.0.0.1:80: connect: no route to host",
            ),
        ] {
            let failure = failure(address, call, &io::Error::from_raw_os_error(number));
            assert_eq!((failure.verdict, failure.text.as_str()), (verdict, text));
        }
    }
}
