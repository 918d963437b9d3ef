//! A connection to a bus, for a tokio task.

use std::{
    collections::VecDeque,
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send,
};
use tokio::{
    io::unix::AsyncFd,
    time::{Instant, timeout_at},
};

use super::{
    address::BusAddress,
    message::{BUS, Call, Incoming, Received, Reply, START, Signal, decode, length},
    wire::Writer,
};

/// Timeout of each call.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most descriptors that one message can carry: the kernel's limit.
const FDS: usize = 253;
/// Number of signals that are kept while a reply is awaited. A peer that sends more is cut off.
const SIGNALS: usize = 1024;
/// Longest line of the authentication.
const LINE: usize = 512;

/// Why a call over the bus failed.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The bus can't be reached, or the connection was lost.
    #[error("cannot reach D-Bus at {address}")]
    Unreachable {
        /// The socket.
        address: BusAddress,
        /// Why.
        source: io::Error,
    },
    /// What it sent is not valid D-Bus.
    #[error("cannot read a message from D-Bus at {address}: {what}")]
    Unreadable {
        /// The socket.
        address: BusAddress,
        /// Why.
        what: &'static str,
    },
    /// A service rejected the call.
    #[error("{service} refused {method}: {message} ({name})")]
    Refused {
        /// The service.
        service: &'static str,
        /// The method.
        method: &'static str,
        /// Name of the error.
        name: String,
        /// Text of the error.
        message: String,
    },
}

/// A connection to a bus. After an error other than [`BusError::Refused`] it must not be used.
#[derive(Debug)]
pub(crate) struct BusConnection {
    address: BusAddress,
    socket: AsyncFd<OwnedFd>,
    /// Received bytes of messages that are not complete.
    bytes: Vec<u8>,
    /// Received descriptors, in the order of their messages.
    fds: VecDeque<OwnedFd>,
    signals: VecDeque<Signal>,
    serial: u32,
}

impl BusConnection {
    /// Connects, authenticates by the socket's credentials and gets a name on the bus.
    pub(crate) async fn open(address: &BusAddress) -> Result<Self, BusError> {
        let unreachable = |source| BusError::Unreachable {
            address: address.clone(),
            source,
        };
        let socket = address.connect().map_err(unreachable)?;
        #[expect(
            deprecated,
            reason = "its unsafe successor asks for what an OwnedFd guarantees"
        )]
        let socket = AsyncFd::new(socket).map_err(unreachable)?;
        let mut connection = Self {
            address: address.clone(),
            socket,
            bytes: Vec::new(),
            fds: VecDeque::new(),
            signals: VecDeque::new(),
            serial: 0,
        };
        let deadline = Instant::now() + PATIENCE;
        let authenticated = timeout_at(deadline, connection.authenticate()).await;
        authenticated
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(unreachable)?;
        let hello = Call::new(BUS, "Hello", "", Writer::default());
        connection.call(&hello).await?;
        Ok(connection)
    }

    /// Receives signals that match this rule.
    pub(crate) async fn add_match(&mut self, rule: &str) -> Result<(), BusError> {
        let mut body = Writer::default();
        body.text(rule);
        let call = Call::new(BUS, "AddMatch", "s", body);
        self.call(&call).await.map(drop)
    }

    /// Calls a method; returns the reply and its descriptors.
    pub(crate) async fn call(&mut self, call: &Call) -> Result<(Reply, Vec<OwnedFd>), BusError> {
        let deadline = Instant::now() + PATIENCE;
        let answered = timeout_at(deadline, self.exchange(call)).await;
        let late = |_| Err(self.unreachable(io::ErrorKind::TimedOut.into()));
        let (reply, fds) = answered.unwrap_or_else(late)?;
        match reply.refusal {
            Some(refusal) => Err(BusError::Refused {
                service: call.target.destination,
                method: call.method,
                name: refusal.name,
                message: refusal.message,
            }),
            None => Ok((reply, fds)),
        }
    }

    /// Waits for the next signal.
    ///
    /// Cancel safety: dropping the future loses nothing.
    pub(crate) async fn signal(&mut self) -> Result<Signal, BusError> {
        loop {
            if let Some(signal) = self.signals.pop_front() {
                return Ok(signal);
            }
            if let (Incoming::Signal(signal), _) = self.receive().await? {
                return Ok(signal);
            }
        }
    }

    /// The error of a service that breaks its own interface.
    pub(crate) fn unreadable(&self, what: &'static str) -> BusError {
        BusError::Unreadable {
            address: self.address.clone(),
            what,
        }
    }

    fn unreachable(&self, source: io::Error) -> BusError {
        BusError::Unreachable {
            address: self.address.clone(),
            source,
        }
    }

    async fn exchange(&mut self, call: &Call) -> Result<(Reply, Vec<OwnedFd>), BusError> {
        self.serial += 1;
        let message = call.encode(self.serial, true);
        let sent = self.send(&message).await;
        sent.map_err(|source| self.unreachable(source))?;
        loop {
            match self.receive().await? {
                (Incoming::Reply(serial, reply), fds) if serial == self.serial => {
                    return Ok((reply, fds));
                }
                (Incoming::Signal(signal), _) => {
                    if self.signals.len() >= SIGNALS {
                        return Err(self.unreadable("there are too many signals"));
                    }
                    self.signals.push_back(signal);
                }
                (Incoming::Reply(..) | Incoming::Other, _) => {}
            }
        }
    }

    async fn authenticate(&mut self) -> io::Result<()> {
        let user = rustix::process::geteuid().as_raw().to_string();
        let user = hex::encode(user);
        let denied = |what: String| io::Error::new(io::ErrorKind::PermissionDenied, what);
        self.send(format!("\0AUTH EXTERNAL {user}\r\n").as_bytes())
            .await?;
        let answer = self.line().await?;
        if !answer.starts_with("OK ") {
            return Err(denied(format!("it answered `{answer}` to the user id")));
        }
        self.send(b"NEGOTIATE_UNIX_FD\r\n").await?;
        let answer = self.line().await?;
        if answer != "AGREE_UNIX_FD" {
            return Err(denied(format!(
                "it answered `{answer}` to the request for file descriptors"
            )));
        }
        self.send(b"BEGIN\r\n").await
    }

    /// The next line of the authentication.
    async fn line(&mut self) -> io::Result<String> {
        loop {
            let end = self.bytes.windows(2).position(|pair| pair == b"\r\n");
            if let Some(end) = end {
                let line: Vec<u8> = self.bytes.drain(..end + 2).take(end).collect();
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            if self.bytes.len() > LINE {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.fill().await?;
        }
    }

    /// The next message with its descriptors. Cancel safe.
    async fn receive(&mut self) -> Result<(Incoming, Vec<OwnedFd>), BusError> {
        loop {
            if let Some(Received { incoming, fds }) = self.take_message()? {
                if fds > self.fds.len() {
                    return Err(self.unreadable("file descriptors are missing"));
                }
                return Ok((incoming, self.fds.drain(..fds).collect()));
            }
            let filled = self.fill().await;
            filled.map_err(|source| self.unreachable(source))?;
        }
    }

    /// The first of the received messages, if it is complete.
    fn take_message(&mut self) -> Result<Option<Received>, BusError> {
        if self.bytes.len() < START {
            return Ok(None);
        }
        let length = length(&self.bytes).map_err(|what| self.unreadable(what))?;
        if self.bytes.len() < length {
            return Ok(None);
        }
        let message: Vec<u8> = self.bytes.drain(..length).collect();
        let received = decode(&message).map_err(|what| self.unreadable(what))?;
        Ok(Some(received))
    }

    /// Receives more bytes, at least one.
    async fn fill(&mut self) -> io::Result<()> {
        let mut space = [0; 4096];
        loop {
            let mut ready = self.socket.readable().await?;
            match ready.try_io(|socket| receive(socket, &mut space)) {
                Ok(Ok((0, _))) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(Ok((count, fds))) => {
                    self.bytes.extend(&space[..count]);
                    self.fds.extend(fds);
                    return Ok(());
                }
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }

    async fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.socket.writable().await?;
            let sent = ready.try_io(|socket| Ok(send(socket, bytes, SendFlags::NOSIGNAL)?));
            if let Ok(sent) = sent {
                bytes = &bytes[sent?..];
            }
        }
        Ok(())
    }
}

fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut data = [IoSliceMut::new(bytes)];
    let got = recvmsg(socket, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            fds.extend(more);
        }
    }
    if got.flags.contains(ReturnFlags::CTRUNC) {
        // This process has too many open files.
        return Err(io::Error::other("file descriptors could not be received"));
    }
    Ok((got.bytes, fds))
}
