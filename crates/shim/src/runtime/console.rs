//! The socket through which an external runtime hands over the terminal it has made.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixListener,
    },
    path::{Path, PathBuf},
};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::{spawn::open_dir, wire};

/// A socket that waits for one terminal.
#[derive(Debug)]
pub(super) struct ConsoleSocket {
    listener: UnixListener,
    /// Keeps the path short: socket addresses have room for 107 bytes.
    folder: OwnedFd,
    name: String,
    path: PathBuf,
}

impl ConsoleSocket {
    /// Listens in the bundle.
    pub(super) fn listen(bundle: &Path, name: &str) -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;
        let folder = open_dir(bundle)?;
        let path = bundle.join(name);
        let _ = std::fs::remove_file(&path);
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        let short = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
        rustix::net::bind(&socket, &SocketAddrUnix::new(short)?)?;
        rustix::net::listen(&socket, 1)?;
        Ok(Self {
            listener: socket.into(),
            folder,
            name: name.to_owned(),
            path,
        })
    }

    /// The path that the runtime is told, valid while this lives.
    pub(super) fn told(&self) -> String {
        use std::os::fd::AsRawFd as _;
        let (shim, folder) = (std::process::id(), self.folder.as_raw_fd());
        format!("/proc/{shim}/fd/{folder}/{}", self.name)
    }

    /// The terminal, if it was sent; the runtime sends it before it ends.
    pub(super) fn terminal(&self) -> io::Result<OwnedFd> {
        let (connection, _) = self.listener.accept()?;
        connection.set_nonblocking(true)?;
        let mut fds = Vec::new();
        // What is sent besides the descriptor is the name of the device, which nobody needs.
        wire::receive(&connection, &mut [0; 4096], &mut fds)?;
        fds.pop()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no terminal was sent"))
    }
}

impl AsFd for ConsoleSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for ConsoleSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
