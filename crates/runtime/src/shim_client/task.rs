//! The task that owns the socket to a shim.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rubelet_shim::{
    protocol::{CallFailure, Decoder, FromAgent, FromShim, ShimReply, encode, from_shim},
    wire,
};
use tokio::{
    io::Interest,
    net::UnixStream,
    sync::{mpsc, oneshot, watch},
};

use super::{OutgoingFrame, ShimEvent, ShimEventHandler, ShimResponse, watch_process};

/// Bytes read at once.
const READ_SIZE: usize = 16 * 1024;

pub(super) struct ConnectionTask {
    socket: UnixStream,
    handle: Arc<OwnedFd>,
    queue: mpsc::UnboundedReceiver<OutgoingFrame>,
    // Weak, so that the queue ends with the link and not with this task.
    acks: mpsc::WeakUnboundedSender<OutgoingFrame>,
    on_event: ShimEventHandler,
    ended: watch::Sender<bool>,
    decoder: Decoder,
    /// Descriptors that arrived before their frame was complete.
    fds: Vec<OwnedFd>,
    waiting: HashMap<u64, oneshot::Sender<ShimResponse>>,
    /// The frame that is being sent, and the bytes sent so far.
    sending: Option<(OutgoingFrame, usize)>,
}

impl ConnectionTask {
    pub(super) fn new(
        socket: UnixStream,
        handle: Arc<OwnedFd>,
        queue: mpsc::UnboundedReceiver<OutgoingFrame>,
        acks: mpsc::WeakUnboundedSender<OutgoingFrame>,
        on_event: ShimEventHandler,
        ended: watch::Sender<bool>,
    ) -> Self {
        Self {
            socket,
            handle,
            queue,
            acks,
            on_event,
            ended,
            decoder: Decoder::new(),
            fds: Vec::new(),
            waiting: HashMap::new(),
            sending: None,
        }
    }

    pub(super) async fn run(mut self) {
        let reason = match self.work().await {
            Ok(()) => "the runtime closed it".to_owned(),
            Err(error) => error.to_string(),
        };
        // Dropping the senders fails the pending calls.
        self.waiting.clear();
        self.queue.close();
        // Before the event: its handler must find the connection ended.
        self.ended.send_replace(true);
        (self.on_event)(ShimEvent::Ended { reason });
    }

    /// Runs until the shim exits or the link is dropped.
    async fn work(&mut self) -> io::Result<()> {
        let process = watch_process(&self.handle)?;
        loop {
            // A socket is nearly always writable: with nothing to send, the loop would spin.
            let interest = if self.sending.is_some() {
                Interest::READABLE | Interest::WRITABLE
            } else {
                Interest::READABLE
            };
            tokio::select! {
                ready = self.socket.ready(interest) => {
                    let ready = ready?;
                    if ready.is_readable() || ready.is_read_closed() {
                        self.receive()?;
                    }
                    if ready.is_writable() {
                        self.flush()?;
                    }
                }
                next = self.queue.recv(), if self.sending.is_none() => match next {
                    Some(outgoing) => {
                        self.begin(outgoing);
                        self.flush()?;
                    }
                    None => return Ok(()),
                },
                // Its last messages may still be in the socket.
                _ = process.readable() => {
                    self.receive()?;
                    return Err(io::Error::other("its process exited"));
                }
            }
        }
    }

    fn begin(&mut self, mut outgoing: OutgoingFrame) {
        if let Some((id, waits)) = outgoing.waits.take() {
            self.waiting.insert(id, waits);
        }
        self.sending = Some((outgoing, 0));
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some((outgoing, sent)) = &mut self.sending {
            let with_first_byte: Vec<BorrowedFd<'_>> = match *sent {
                0 => outgoing.fds.iter().map(AsFd::as_fd).collect(),
                _ => Vec::new(),
            };
            let rest = &outgoing.frame[*sent..];
            let socket = &self.socket;
            let result = socket.try_io(Interest::WRITABLE, || {
                wire::send(socket, rest, &with_first_byte)
            });
            match result {
                Ok(count) => *sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if *sent == outgoing.frame.len() {
                self.sending = None;
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut portion = vec![0; READ_SIZE];
        loop {
            let (socket, fds) = (&self.socket, &mut self.fds);
            let result = socket.try_io(Interest::READABLE, || {
                wire::receive(socket, &mut portion, fds)
            });
            let count = match result {
                Ok(0) => return Err(io::Error::other("it closed the connection")),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            self.decoder.push(&portion[..count]);
            while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                let fds = self.fds.drain(..frame.fds.min(self.fds.len())).collect();
                if let Some(message) = from_shim(&frame.body).map_err(io::Error::other)? {
                    self.take(message, fds)?;
                }
            }
        }
    }

    fn take(&mut self, message: FromShim, fds: Vec<OwnedFd>) -> io::Result<()> {
        match message {
            FromShim::Hello(_) => {}
            FromShim::Reply { id, outcome } => {
                let outcome: Result<ShimReply, CallFailure> = outcome.into();
                if let Some(waits) = self.waiting.remove(&id) {
                    // The receiver was dropped if the caller gave up.
                    let _ = waits.send(ShimResponse { outcome, fds });
                }
            }
            FromShim::Event { sequence, event } => {
                (self.on_event)(ShimEvent::Event(event));
                self.acknowledge(sequence)?;
            }
            FromShim::Goodbye { reason } => return Err(io::Error::other(reason)),
        }
        Ok(())
    }

    /// Acknowledged on receipt, before it is recorded: the shim keeps exits in its state and on
    /// disk until the container is deleted, so nothing is lost.
    fn acknowledge(&self, upto: u64) -> io::Result<()> {
        let frame = encode(&FromAgent::Ack { upto }, 0).map_err(io::Error::other)?;
        if let Some(acks) = self.acks.upgrade() {
            // Only this task closes the queue.
            let _ = acks.send(OutgoingFrame {
                frame,
                fds: Vec::new(),
                waits: None,
            });
        }
        Ok(())
    }
}
