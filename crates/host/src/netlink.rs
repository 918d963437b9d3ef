//! Network interfaces, addresses, routes and neighbours through rtnetlink, without an `ip` binary.
//!
//! The few messages that Rubelet needs are encoded here. The crates for this purpose have hundreds,
//! change their types a few times a year, and at the version that other crates pin they depend on
//! an unmaintained macro crate.
//!
//! A [`RouteSocket`] acts for its lifetime in the network namespace of the thread that opened it;
//! see [`crate::netns`].

mod address;
mod filters;
mod link;
pub(crate) mod message;
mod neighbour;
mod route;
pub(crate) mod socket;

#[cfg(test)]
mod tests;

pub use address::Address;
pub use link::{Bridge, BridgePort, Counters, Link, Veth};
pub use neighbour::Neighbour;
pub use route::{NextHop, Route};
pub use socket::NetlinkError;

use std::os::fd::OwnedFd;

use message::Messages;
use socket::Socket;

/// A socket for rtnetlink.
#[derive(Debug)]
pub struct RouteSocket {
    socket: Socket,
}

impl RouteSocket {
    /// Opens one in the network namespace of this thread.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn open() -> Result<Self, NetlinkError> {
        Socket::route().map(|socket| Self { socket })
    }

    /// Sends changes in one batch; the kernel applies them in order.
    ///
    /// # Errors
    /// The first rejected change; later ones were tried all the same.
    pub fn apply(
        &mut self,
        changes: Changes,
        what: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        let Changes { messages } = changes;
        self.socket.send(&messages, what)
    }
}

/// Uses a socket that was opened elsewhere: one of rtnetlink from another process, or any socket
/// that preserves datagram boundaries, with a peer other than the kernel.
impl From<OwnedFd> for RouteSocket {
    fn from(fd: OwnedFd) -> Self {
        Self {
            socket: Socket::from(fd),
        }
    }
}

/// Changes that are sent together, which saves system calls.
#[derive(Debug, Default)]
#[must_use = "changes do nothing until they are applied"]
pub struct Changes {
    messages: Messages,
}
