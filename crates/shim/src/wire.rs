//! Bytes and file descriptors over a unix stream socket. A frame's descriptors are sent with its
//! first byte; the kernel delivers them with bytes of the same sendmsg(2).

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::retry_on_intr,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    },
};

use crate::protocol::MAX_FDS;

/// Maximum descriptors of one receive: those of a few frames that were sent together.
const FDS_AT_ONCE: usize = 4 * MAX_FDS;

/// Sends bytes, and the descriptors with the first byte; returns the number of bytes sent. Pass no
/// descriptors when sending the rest.
///
/// # Errors
/// As sendmsg(2); `WouldBlock` if the socket doesn't block and is full. EPIPE raises no signal.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "too many file descriptors for one frame",
        ));
    }
    let socket = socket.as_fd();
    let data = [IoSlice::new(bytes)];
    // A socket with a timeout is interrupted even by a stop and a SIGCONT (signal(7)).
    let sent =
        retry_on_intr(|| rustix::net::sendmsg(socket, &data, &mut control, SendFlags::NOSIGNAL))?;
    Ok(sent)
}

/// Receives bytes, and appends descriptors, with close-on-exec, to `fds`; returns the number of
/// bytes, 0 at the end of the stream.
///
/// # Errors
/// As recvmsg(2); `WouldBlock` if the socket doesn't block and is empty. `InvalidData` if there were
/// more descriptors than fit.
pub fn receive(socket: impl AsFd, bytes: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_AT_ONCE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let socket = socket.as_fd();
    let mut data = [IoSliceMut::new(bytes)];
    let got = retry_on_intr(|| {
        rustix::net::recvmsg(socket, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            fds.extend(more);
        }
    }
    if got.flags.contains(rustix::net::ReturnFlags::CTRUNC) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "too many file descriptors at once",
        ));
    }
    Ok(got.bytes)
}
