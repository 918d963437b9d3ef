//! Pipes, sockets and terminals as streams.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use async_trait::async_trait;
use bytes::Bytes;
use rustix::{fs::OFlags, io::Errno};
use tokio::{io::unix::AsyncFd, sync::watch};

use crate::{Sink, Source};

/// Bytes of one read: what one frame carries.
const READ: usize = crate::spdy::frame::LONGEST_DATA;

/// Reads from a pipe, socket or terminal.
pub struct FdSource {
    fd: AsyncFd<OwnedFd>,
    ended: Option<watch::Receiver<bool>>,
    buffer: ReadBuffer,
}

/// The memory of the last full read. Much output reuses it, as the allocator would return it to the
/// kernel and request it again for each read.
#[derive(Default)]
struct ReadBuffer(Bytes);

impl FdSource {
    /// Makes the descriptor non-blocking. When `ended` becomes true, or its sender is gone, the
    /// source ends as soon as nothing is left to read: the output of the exited process is there by
    /// then, and children that hold the other end open are not waited for.
    ///
    /// # Errors
    /// The descriptor does not support polling, such as a regular file.
    pub fn new(fd: OwnedFd, ended: Option<watch::Receiver<bool>>) -> io::Result<Self> {
        Ok(Self {
            fd: register(fd)?,
            ended,
            buffer: ReadBuffer::default(),
        })
    }
}

impl ReadBuffer {
    fn read(&mut self, fd: &OwnedFd) -> io::Result<Option<Bytes>> {
        let mut last = std::mem::take(&mut self.0);
        let mut buffer = Vec::new();
        if last.is_unique() {
            last.clear();
            buffer = last.into();
        }
        buffer.reserve_exact(READ);
        match rustix::io::read(fd, rustix::buffer::spare_capacity(&mut buffer)) {
            // The other side of a terminal is closed.
            Ok(0) | Err(Errno::IO) => Ok(None),
            // Most reads of an interactive session are a few bytes.
            Ok(read) if read < READ / 2 => Ok(Some(Bytes::copy_from_slice(&buffer))),
            Ok(_) => {
                let bytes = Bytes::from(buffer);
                self.0 = bytes.clone();
                Ok(Some(bytes))
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl Source for FdSource {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        let Self { fd, ended, buffer } = self;
        loop {
            let ready = match ended {
                None => fd.readable().await?,
                Some(ended) => tokio::select! {
                    biased;
                    ready = fd.readable() => ready?,
                    // An error means that the sender is gone, which also ends the source.
                    _ = ended.wait_for(|ended| *ended) => {
                        return match buffer.read(fd.get_ref()) {
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                            taken => taken,
                        };
                    }
                },
            };
            let mut ready = ready;
            match ready.try_io(|fd| buffer.read(fd.get_ref())) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(taken) => return taken,
                Err(_would_block) => {}
            }
        }
    }
}

/// Writes to a pipe, socket or terminal.
pub struct FdSink {
    fd: Option<AsyncFd<OwnedFd>>,
    kind: FdKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FdKind {
    /// Or a terminal.
    Pipe,
    Socket,
}

impl FdSink {
    /// Makes the descriptor non-blocking. Closing the sink closes a pipe and shuts down the writing
    /// half of a socket. A terminal must stay open for its output, so it sees no end of input, as
    /// with other runtimes.
    ///
    /// # Errors
    /// The descriptor does not support polling, such as a regular file.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let kind = if rustix::net::sockopt::socket_type(&fd).is_ok() {
            FdKind::Socket
        } else {
            FdKind::Pipe
        };
        Ok(Self {
            fd: Some(register(fd)?),
            kind,
        })
    }
}

#[async_trait]
impl Sink for FdSink {
    async fn write(&mut self, mut bytes: Bytes) -> io::Result<()> {
        let fd = self.fd.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        while !bytes.is_empty() {
            let mut ready = fd.writable().await?;
            let written = ready.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), &bytes)?));
            match written {
                Ok(Ok(written)) => drop(bytes.split_to(written)),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.kind {
            _ if self.fd.is_none() => {}
            FdKind::Socket => {
                if let Some(fd) = &self.fd {
                    // The peer may be gone already.
                    let _ = rustix::net::shutdown(fd.get_ref(), rustix::net::Shutdown::Write);
                }
            }
            FdKind::Pipe => {}
        }
        self.fd = None;
        Ok(())
    }
}

#[expect(
    deprecated,
    reason = "its replacement is unsafe for what types might do; an OwnedFd keeps its promise"
)]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    let flags = rustix::fs::fcntl_getfl(fd.as_fd())?;
    rustix::fs::fcntl_setfl(fd.as_fd(), flags | OFlags::NONBLOCK)?;
    AsyncFd::new(fd)
}

#[cfg(test)]
mod tests;
