//! Opening a TCP connection, with Go's words for what can go wrong.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use tokio::{
    net::TcpSocket,
    time::{Instant, timeout},
};

use crate::{report::Trouble, wire::Wire, words};

/// How often a connection is tried that met itself, or found no free port.
const TRIES: usize = 3;

/// Connects to `host`, an address or a name. Waits without limit; `deadline` only tells how much
/// time each address of a name may take.
///
/// # Errors
/// Refused, unreachable or unknown hosts have failed. Want of sockets or ports on this machine
/// says nothing of the target and is an error of the attempt.
pub(crate) async fn dial(host: &str, port: u16, deadline: Instant) -> Result<Wire, Trouble> {
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
                Err(Trouble::failed(text))
            })
        };
        left -= 1;
        match outcome {
            Ok(wire) => return Ok(wire),
            Err(trouble) => first = first.or(Some(trouble)),
        }
    }
    Err(first.unwrap_or_else(|| no_such_host(host)))
}

async fn lookup(host: &str, port: u16) -> Result<Vec<SocketAddr>, Trouble> {
    match tokio::net::lookup_host((host, port)).await {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => {
            let text = error.to_string();
            // What getaddrinfo says for a name without addresses.
            if text.ends_with("not known") || text.contains("No address associated") {
                return Err(no_such_host(host));
            }
            let reason = text.rsplit(": ").next().unwrap_or_default();
            Err(Trouble::failed(format!(
                "dial tcp: lookup {host}: {}",
                reason.to_ascii_lowercase()
            )))
        }
    }
}

fn no_such_host(host: &str) -> Trouble {
    Trouble::failed(format!("dial tcp: lookup {host}: no such host"))
}

async fn connect(address: SocketAddr) -> Result<Wire, Trouble> {
    let mut last = io::Error::from_raw_os_error(libc::ECONNREFUSED);
    for _ in 0..TRIES {
        let socket = open(address).map_err(|error| trouble(address, "socket", &error))?;
        match socket.connect(address).await {
            Ok(stream) => {
                let local = stream
                    .local_addr()
                    .map_err(|error| trouble(address, "getsockname", &error))?;
                // A port of this machine that nobody listens on can be given to the very socket
                // that looks for it, and then it connects to itself.
                if local != address {
                    return Ok(Wire::new(stream, local, address));
                }
                last = io::Error::from_raw_os_error(libc::ECONNREFUSED);
            }
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => last = error,
            Err(error) => return Err(trouble(address, "connect", &error)),
        }
    }
    Err(trouble(address, "connect", &last))
}

fn open(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_nodelay(true)?;
    // Whenever and wherever the connection is closed, it is by a reset.
    socket.set_zero_linger()?;
    Ok(socket)
}

fn trouble(address: SocketAddr, call: &str, error: &io::Error) -> Trouble {
    let text = format!("dial tcp {address}: {call}: {}", words::of(error));
    if is_want_of_ours(error) {
        Trouble::errored(text)
    } else {
        Trouble::failed(text)
    }
}

/// Whether this machine, not the target, is the cause: no descriptors, no memory, no free ports.
fn is_want_of_ours(error: &io::Error) -> bool {
    const WANTS: [i32; 6] = [
        libc::EMFILE,
        libc::ENFILE,
        libc::ENOBUFS,
        libc::ENOMEM,
        libc::EADDRNOTAVAIL,
        libc::EAGAIN,
    ];
    error
        .raw_os_error()
        .is_some_and(|number| WANTS.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn want_on_this_machine_says_nothing_of_the_target() {
        let address = SocketAddr::from(([10, 0, 0, 1], 80));
        for (call, number, verdict, text) in [
            (
                "socket",
                libc::EMFILE,
                Verdict::Errored,
                "dial tcp 10.0.0.1:80: socket: too many open files",
            ),
            (
                "connect",
                libc::EADDRNOTAVAIL,
                Verdict::Errored,
                "dial tcp 10.0.0.1:80: connect: cannot assign requested address",
            ),
            (
                "connect",
                libc::EHOSTUNREACH,
                Verdict::Failed,
                "dial tcp 10.0.0.1:80: connect: no route to host",
            ),
        ] {
            let trouble = trouble(address, call, &io::Error::from_raw_os_error(number));
            assert_eq!((trouble.verdict, trouble.text.as_str()), (verdict, text));
        }
    }
}
