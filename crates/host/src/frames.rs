//! Raw Ethernet frames on one interface, as a hostile pod may send them. For tests only, behind the
//! feature `frames`.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType,
    sockopt::{Timeout, set_socket_timeout},
};

use crate::packet_tap;

/// A socket for the frames of one interface in the network namespace in which it was opened.
#[derive(Debug)]
pub struct Frames(OwnedFd);

impl Frames {
    /// Opens one for the interface with this index. Receives frames from then on.
    ///
    /// # Errors
    /// There is no such interface, or the process lacks privileges.
    pub fn open(link: u32) -> io::Result<Self> {
        // Without a protocol nothing is received until the socket is bound to the interface.
        let fd = rustix::net::socket_with(
            AddressFamily::PACKET,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None::<Protocol>,
        )?;
        packet_tap::bind(&fd, link)?;
        Ok(Self(fd))
    }

    /// Sends a frame, starting with the destination's MAC address.
    ///
    /// # Errors
    /// The interface is down, or the frame is too long.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.0, frame, SendFlags::empty())?;
        Ok(())
    }

    /// The next frame that `wanted` accepts, sent or received; `None` if none arrives within
    /// `patience`.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn wait_for(
        &self,
        patience: Duration,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Option<Vec<u8>>> {
        set_socket_timeout(&self.0, Timeout::Recv, Some(patience))?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match rustix::net::recv(&self.0, &mut buffer[..], RecvFlags::empty()) {
                Ok((length, _)) if wanted(&buffer[..length]) => {
                    return Ok(Some(buffer[..length].to_vec()));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
