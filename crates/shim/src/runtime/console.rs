//! The console socket, by which an external runtime passes the terminal it has created.

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

/// A console socket.
#[derive(Debug)]
pub(super) struct ConsoleSocket {
    listener: UnixListener,
    /// Keeps the path short: socket addresses have at most 107 bytes.
    directory: OwnedFd,
    name: String,
    path: PathBuf,
}

impl ConsoleSocket {
    /// Listens in the bundle.
    pub(super) fn listen(bundle: &Path, name: &str) -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;
        let directory = open_dir(bundle)?;
        let path = bundle.join(name);
        let _ = std::fs::remove_file(&path);
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        let short = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
        rustix::net::bind(&socket, &SocketAddrUnix::new(short)?)?;
        rustix::net::listen(&socket, 1)?;
        Ok(Self {
            listener: socket.into(),
            directory,
            name: name.to_owned(),
            path,
        })
    }

    /// The path for the runtime, valid while this exists.
    pub(super) fn path_for_runtime(&self) -> String {
        use std::os::fd::AsRawFd as _;
        let (shim, directory) = (std::process::id(), self.directory.as_raw_fd());
        format!("/proc/{shim}/fd/{directory}/{}", self.name)
    }

    /// Receives the terminal; the runtime sends it before it exits.
    pub(super) fn terminal(&self) -> io::Result<OwnedFd> {
        let (connection, _) = self.listener.accept()?;
        connection.set_nonblocking(true)?;
        let mut fds = Vec::new();
        // The bytes are the name of the device, which is not needed.
        wire::receive(&connection, &mut [0; 4096], &mut fds)?;
        fds.pop().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the runtime sent no terminal")
        })
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
