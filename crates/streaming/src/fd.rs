//! Pipes, sockets and terminals as streams.

use std::{
    collections::VecDeque,
    io,
    mem::MaybeUninit,
    os::fd::{AsFd as _, OwnedFd},
};

use async_trait::async_trait;
use bytes::Bytes;
use rustix::{fs::OFlags, io::Errno};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::watch,
};

use crate::{Sink, Source};

/// Bytes of one read: what one frame carries.
const READ: usize = crate::spdy::frame::LONGEST_DATA;

/// Reads whose memory is used again: those on their way to a client, and the next.
const REUSED: usize = 8;

/// Reads from a pipe, socket or terminal.
pub struct FdSource {
    fd: AsyncFd<OwnedFd>,
    ended: Option<watch::Receiver<bool>>,
    buffer: ReadBuffer,
}

/// Memory for reads.
#[derive(Default)]
struct ReadBuffer {
    /// That of the last full reads, the oldest first. Much output uses it again: else the allocator would return it to
    /// the kernel and request it again for each read. More than one, as the bytes of the last ones may still be on
    /// their way to the client.
    recent: VecDeque<Bytes>,
}

impl FdSource {
    /// Makes the descriptor non-blocking. When `ended` becomes true, or its sender is gone, the
    /// source ends as soon as nothing is left to read: the output of the exited process is there by
    /// then, and children that hold the other end open are not waited for.
    ///
    /// # Errors
    /// The descriptor does not support polling, such as a regular file.
    pub fn new(fd: OwnedFd, ended: Option<watch::Receiver<bool>>) -> io::Result<Self> {
        Ok(Self {
            fd: register(fd, Interest::READABLE)?,
            ended,
            buffer: ReadBuffer::default(),
        })
    }
}

impl ReadBuffer {
    fn read(&mut self, fd: &OwnedFd) -> io::Result<Option<Bytes>> {
        let read = match self.recent.is_empty() {
            true => read_some(fd),
            false => read_much(fd, self.reused()),
        };
        match read {
            // Most reads of an interactive session are a few bytes.
            Ok(bytes) if bytes.len() < READ / 2 => {
                self.recent.clear();
                Ok((!bytes.is_empty()).then_some(bytes))
            }
            Ok(bytes) => {
                if self.recent.len() == REUSED {
                    self.recent.pop_front();
                }
                self.recent.push_back(bytes.clone());
                Ok(Some(bytes))
            }
            Err(error) => {
                self.recent.clear();
                match error {
                    // The other side of a terminal is closed.
                    Errno::IO => Ok(None),
                    error => Err(error.into()),
                }
            }
        }
    }

    /// Memory that nothing uses any more, or new memory.
    fn reused(&mut self) -> Vec<u8> {
        let free = self.recent.pop_front_if(|bytes| bytes.is_unique());
        let mut buffer = Vec::from(free.unwrap_or_default());
        buffer.clear();
        buffer.reserve_exact(READ);
        buffer
    }
}

/// Without any memory but that of the bytes.
fn read_some(fd: &OwnedFd) -> Result<Bytes, Errno> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); READ];
    let (bytes, _) = rustix::io::read(fd, &mut buffer)?;
    Ok(Bytes::copy_from_slice(bytes))
}

/// Without a copy, unless there are few bytes.
fn read_much(fd: &OwnedFd, mut buffer: Vec<u8>) -> Result<Bytes, Errno> {
    let read = rustix::io::read(fd, rustix::buffer::spare_capacity(&mut buffer))?;
    Ok(match read < READ / 2 {
        true => Bytes::copy_from_slice(&buffer),
        false => buffer.into(),
    })
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
            fd: Some(register(fd, Interest::WRITABLE)?),
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

/// A socket has one registration for each direction: with both interests, each packet would wake both.
#[expect(
    deprecated,
    reason = "its replacement is unsafe for what types might do; an OwnedFd keeps its promise"
)]
fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    let flags = rustix::fs::fcntl_getfl(fd.as_fd())?;
    rustix::fs::fcntl_setfl(fd.as_fd(), flags | OFlags::NONBLOCK)?;
    AsyncFd::with_interest(fd, interest)
}

#[cfg(test)]
mod tests;
