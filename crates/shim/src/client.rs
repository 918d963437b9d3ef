//! A blocking client of a shim: for tests, tools and simple agents.

use std::{
    collections::VecDeque,
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use crate::{
    protocol::{
        self, Call, CallFailure, CallResult, Decoder, Event, FromAgent, FromShim, Hello, Request,
        ShimReply, VERSION,
    },
    wire,
};

/// A connection to a shim.
#[derive(Debug)]
pub struct Client {
    socket: UnixStream,
    decoder: Decoder,
    fds: VecDeque<OwnedFd>,
    hello: Hello,
    last_id: u64,
    /// Messages that arrived while waiting for another one.
    early: VecDeque<(FromShim, Vec<OwnedFd>)>,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The shim refused the call.
    #[error(transparent)]
    Failure(#[from] CallFailure),
    /// The shim closed the connection.
    #[error("the shim closed the connection: {0}")]
    Goodbye(String),
    /// The received bytes are not a message.
    #[error(transparent)]
    Decode(#[from] protocol::DecodeError),
    /// The connection broke or timed out.
    #[error("the connection to the shim broke")]
    Io(#[from] io::Error),
}

impl Client {
    /// Exchanges hellos. `timeout` bounds each wait.
    ///
    /// # Errors
    /// The shim doesn't answer.
    pub fn new(socket: UnixStream, subscribe: bool, timeout: Duration) -> Result<Self, CallError> {
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let mut client = Self {
            socket,
            decoder: Decoder::new(),
            fds: VecDeque::new(),
            hello: Hello::default(),
            last_id: 0,
            early: VecDeque::new(),
        };
        let hello = Hello {
            version: VERSION,
            subscribe,
            pid: std::process::id().cast_signed(),
        };
        let sent = client.send(&FromAgent::Hello(hello), &[]);
        // A shim that failed to start sends a Goodbye with the reason before it closes the
        // connection.
        match client.receive() {
            Ok((FromShim::Hello(hello), _)) => client.hello = hello,
            Ok((FromShim::Goodbye { reason }, _)) => return Err(CallError::Goodbye(reason)),
            Err(error) => return Err(sent.err().unwrap_or(error)),
            _ => {
                return Err(protocol::DecodeError::Json(
                    "the shim did not send Hello first".into(),
                )
                .into());
            }
        }
        Ok(client)
    }

    /// The shim's hello.
    #[must_use]
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Makes a call and waits for the reply and its file descriptors.
    ///
    /// # Errors
    /// The shim refused the call, or the connection broke.
    pub fn call(
        &mut self,
        call: Call,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(ShimReply, Vec<OwnedFd>), CallError> {
        let id = self.request(call, fds)?;
        self.reply(id)
    }

    /// Sends a call; returns its number.
    ///
    /// # Errors
    /// The connection broke.
    pub fn request(&mut self, call: Call, fds: &[BorrowedFd<'_>]) -> Result<u64, CallError> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&FromAgent::Request(Request { id, call }), fds)?;
        Ok(id)
    }

    /// Waits for the reply to a call.
    ///
    /// # Errors
    /// The shim refused the call, or the connection broke.
    pub fn reply(&mut self, id: u64) -> Result<(ShimReply, Vec<OwnedFd>), CallError> {
        let is_it =
            |message: &FromShim| matches!(message, FromShim::Reply { id: got, .. } if *got == id);
        let (message, fds) = self.wait_for(is_it)?;
        match message {
            FromShim::Reply {
                outcome: CallResult::Answer(answer),
                ..
            } => Ok((answer, fds)),
            FromShim::Reply {
                outcome: CallResult::Failure(failure),
                ..
            } => Err(failure.into()),
            _ => unreachable!("only the reply is waited for"),
        }
    }

    /// Waits for the next event; returns it with its sequence number. Does not acknowledge it.
    ///
    /// # Errors
    /// The connection broke.
    pub fn event(&mut self) -> Result<(u64, Event), CallError> {
        let is_it = |message: &FromShim| matches!(message, FromShim::Event { .. });
        match self.wait_for(is_it)?.0 {
            FromShim::Event { sequence, event } => Ok((sequence, event)),
            _ => unreachable!("only events are waited for"),
        }
    }

    /// Acknowledges events.
    ///
    /// # Errors
    /// The connection broke.
    pub fn ack(&mut self, upto: u64) -> Result<(), CallError> {
        self.send(&FromAgent::Ack { upto }, &[])
    }

    fn wait_for(
        &mut self,
        is_it: impl Fn(&FromShim) -> bool,
    ) -> Result<(FromShim, Vec<OwnedFd>), CallError> {
        if let Some(place) = self.early.iter().position(|(message, _)| is_it(message))
            && let Some(found) = self.early.remove(place)
        {
            return Ok(found);
        }
        loop {
            let (message, fds) = self.receive()?;
            if is_it(&message) {
                return Ok((message, fds));
            }
            if let FromShim::Goodbye { reason } = message {
                return Err(CallError::Goodbye(reason));
            }
            self.early.push_back((message, fds));
        }
    }

    fn send(&self, message: &FromAgent, fds: &[BorrowedFd<'_>]) -> Result<(), CallError> {
        let bytes = protocol::encode(message, fds.len())?;
        let mut sent = wire::send(&self.socket, &bytes, fds)?;
        while sent < bytes.len() {
            sent += wire::send(&self.socket, &bytes[sent..], &[])?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(FromShim, Vec<OwnedFd>), CallError> {
        loop {
            while let Some(frame) = self.decoder.next_frame()? {
                if self.fds.len() < frame.fds {
                    return Err(io::Error::from(io::ErrorKind::InvalidData).into());
                }
                let fds = self.fds.drain(..frame.fds).collect();
                if let Some(message) = protocol::from_shim(&frame.body)? {
                    return Ok((message, fds));
                }
            }
            let mut bytes = vec![0; 16 << 10];
            let mut fds = Vec::new();
            let got = wire::receive(self.socket.as_fd(), &mut bytes, &mut fds)?;
            if got == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.decoder.push(&bytes[..got]);
            self.fds.extend(fds);
        }
    }
}
