//! A connection of an agent. Never blocks.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use crate::{
    protocol::{self, DecodedMessage, Decoder, FromShim},
    wire,
};

/// Maximum bytes in the send buffer. An agent that does not read is disconnected; it may reconnect
/// and query the state.
const MOST_WAITING: usize = 4 << 20;

/// Bytes of one read.
const READ: usize = 16 << 10;

/// Maximum received descriptors without their frame.
const MOST_FDS: usize = 16;

/// The request that a reply is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplyTo {
    pub(super) connection: u32,
    pub(super) id: u64,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    decoder: Decoder,
    /// Descriptors whose frames are incomplete.
    fds: VecDeque<OwnedFd>,
    waiting: VecDeque<Outgoing>,
    waiting_bytes: usize,
    /// The agent has sent Hello.
    pub(super) greeted: bool,
    /// The loop waits until the socket is writable.
    pub(super) blocked: bool,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<OwnedFd>,
}

/// A message with its descriptors.
pub(super) type Received = (DecodedMessage, Vec<OwnedFd>);

/// The state of a connection after a read.
#[derive(Debug)]
pub(super) enum ReadState {
    /// It is open.
    Open,
    /// The agent closed it, or it failed.
    Closed,
    /// The received bytes are not a message.
    Malformed(String),
}

impl Connection {
    /// Wraps a connected socket.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self {
            socket,
            decoder: Decoder::new(),
            fds: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            greeted: false,
            blocked: false,
        })
    }

    /// Reads once.
    pub(super) fn read(&mut self, messages: &mut Vec<Received>) -> ReadState {
        let mut bytes = [0; READ];
        let mut fds = Vec::new();
        let got = match wire::receive(&self.socket, &mut bytes, &mut fds) {
            Ok(0) => return ReadState::Closed,
            Ok(got) => got,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => ReadState::Open,
                    io::ErrorKind::InvalidData => ReadState::Malformed(error.to_string()),
                    _ => ReadState::Closed,
                };
            }
        };
        self.fds.extend(fds);
        self.decoder.push(&bytes[..got]);
        match self.decode(messages) {
            Ok(()) if self.fds.len() > MOST_FDS => {
                ReadState::Malformed("file descriptors without messages".into())
            }
            Ok(()) => ReadState::Open,
            Err(why) => ReadState::Malformed(why),
        }
    }

    fn decode(&mut self, messages: &mut Vec<Received>) -> Result<(), String> {
        while let Some(frame) = self.decoder.next_frame().map_err(|why| why.to_string())? {
            if frame.fds > self.fds.len() {
                return Err("a message without its file descriptors".into());
            }
            let fds = self.fds.drain(..frame.fds).collect();
            let message = protocol::from_agent(&frame.body).map_err(|why| why.to_string())?;
            messages.push((message, fds));
        }
        if self.fds.is_empty() {
            self.fds = VecDeque::new();
        }
        Ok(())
    }

    /// Sends a message as soon as possible.
    ///
    /// # Errors
    /// The connection is broken, or the send buffer is full.
    pub(super) fn send(&mut self, message: &FromShim, fds: Vec<OwnedFd>) -> io::Result<()> {
        let bytes = protocol::encode(message, fds.len()).map_err(io::Error::other)?;
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(Outgoing {
            bytes,
            sent: 0,
            fds,
        });
        self.flush()?;
        // After the flush: only what the socket did not take counts.
        if self.waiting_bytes > MOST_WAITING {
            return Err(io::Error::other("the agent does not read"));
        }
        Ok(())
    }

    /// Writes the send buffer, as far as the socket accepts it.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while let Some(next) = self.waiting.front_mut() {
            let fds: Vec<BorrowedFd<'_>> = next.fds.iter().map(|fd| fd.as_fd()).collect();
            match wire::send(&self.socket, &next.bytes[next.sent..], &fds) {
                Ok(sent) => {
                    self.waiting_bytes -= sent;
                    next.sent += sent;
                    // The descriptors were sent with the first byte.
                    next.fds = Vec::new();
                    if next.sent == next.bytes.len() {
                        self.waiting.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting = VecDeque::new();
        Ok(())
    }

    /// Reports whether the send buffer is not empty.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes the whole send buffer; gives up after a second without progress.
    pub(super) fn finish(&mut self) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let second = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        while self.is_waiting() {
            let mut ready = [PollFd::new(&self.socket, PollFlags::OUT)];
            if !matches!(poll(&mut ready, Some(&second)), Ok(1..)) || self.flush().is_err() {
                return;
            }
        }
    }
}
