//! Whether a TCP port accepts connections.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd as _, BorrowedFd},
    time::Duration,
};

use rubelet_base::error_text;
use rustix::{
    event::PollFlags,
    io::Errno,
    net::sockopt::{set_socket_linger, socket_error},
};

use crate::{
    clock::SessionClock,
    packet::Family,
    sockets::{OpenSocket, SocketKind},
    wait::wait,
};

/// The result of an attempt to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectResult {
    /// The port accepts, after this time.
    Yes(Duration),
    /// An error of the network or the host: `Connection refused`.
    Error(String),
    /// Nothing.
    Silence,
}

/// Connects, and resets the connection at once. `None` if it is to stop. Blocks the thread.
///
/// # Errors
/// No socket can be opened, or waiting fails.
pub fn connect(
    address: SocketAddr,
    timeout: Duration,
    open: &dyn OpenSocket,
    stop: BorrowedFd<'_>,
) -> io::Result<Option<ConnectResult>> {
    let clock = SessionClock::start();
    let socket = open.open(SocketKind::Tcp(Family::of(address.ip())))?;
    // Nothing is left behind.
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    let begun = clock.now();
    match rustix::net::connect(&socket, &address) {
        Ok(()) => return Ok(Some(ConnectResult::Yes(clock.now().saturating_sub(begun)))),
        Err(Errno::INPROGRESS) => {}
        Err(errno) => return Ok(Some(failed(errno))),
    }
    loop {
        let left = (begun + timeout).saturating_sub(clock.now());
        if left.is_zero() {
            return Ok(Some(ConnectResult::Silence));
        }
        let Some(ready) = wait(stop, &[socket.as_fd()], PollFlags::OUT, left)? else {
            return Ok(None);
        };
        if !ready.iter().any(|ready| ready.connected || ready.errors) {
            continue;
        }
        return Ok(Some(match socket_error(&socket)? {
            Ok(()) => ConnectResult::Yes(clock.now().saturating_sub(begun)),
            Err(errno) => failed(errno),
        }));
    }
}

fn failed(errno: Errno) -> ConnectResult {
    ConnectResult::Error(error_text(&errno.into()))
}
