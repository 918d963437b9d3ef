//! Network interfaces, addresses, routes and neighbours through rtnetlink, natively: no `ip` binary.
//!
//! The handful of messages Rubelet needs are encoded here. The crates for this job know hundreds,
//! change their types a few times a year, and at the version that other crates pin they bring an
//! unmaintained macro crate along; what is used of them would be a small fraction.
//!
//! A [`RouteSocket`] acts in the network namespace that the thread which opened it was in, for as long
//! as it lives; see [`crate::netns`].

mod address;
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
pub use route::Route;
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
    /// The kernel refuses.
    pub fn open() -> Result<Self, NetlinkError> {
        Socket::route().map(|socket| Self { socket })
    }

    /// Sends changes in one go; the kernel makes them in their order.
    ///
    /// # Errors
    /// The first change that was refused; those behind it were tried all the same.
    pub fn apply(
        &mut self,
        changes: Changes,
        what: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        let Changes { messages } = changes;
        self.socket.send(&messages, what)
    }
}

/// Takes a socket that somebody else opened: one of rtnetlink from another process, or any socket
/// that keeps the boundaries of datagrams, with something else than the kernel at its other end.
impl From<OwnedFd> for RouteSocket {
    fn from(fd: OwnedFd) -> Self {
        Self {
            socket: Socket::from(fd),
        }
    }
}

/// Changes that are sent together, which spares calls.
#[derive(Debug, Default)]
#[must_use = "changes do nothing until they are applied"]
pub struct Changes {
    messages: Messages,
}
