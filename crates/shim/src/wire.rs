//! Bytes and file descriptors over a unix stream socket. A frame's descriptors are sent with its
//! first byte; the kernel hands them out together with bytes of the same send.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::protocol::MAX_FDS;

/// Most descriptors that one receive can bring: those of a few frames that were sent at once.
const FDS_AT_ONCE: usize = 4 * MAX_FDS;

/// Sends bytes, and the descriptors with the first of them; how many bytes went. Whoever calls
/// again with the rest gives no descriptors then.
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
    let sent = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(sent)
}

/// Receives bytes, and puts descriptors that come with them behind those in `fds`, all closed on
/// exec; how many bytes came, 0 at the end.
///
/// # Errors
/// As recvmsg(2); `WouldBlock` if the socket doesn't block and is empty. `InvalidData` if there were
/// more descriptors than fit.
pub fn receive(socket: impl AsFd, bytes: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_AT_ONCE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
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
