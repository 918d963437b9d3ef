//! The bytes of one stream, from the task that reads the connection to the stream's reader.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::Source;

/// Chunks that wait for their reader: about 256 KiB. Beyond that the whole connection waits, since
/// no session protocol has another form of backpressure.
const WAITING_CHUNKS: usize = 16;

const FINISHED: u8 = 1;
const RESET: u8 = 2;

/// Whether the peer still sends.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemoteState(Arc<AtomicU8>);

impl RemoteState {
    /// True after the peer reset the stream.
    pub(crate) fn is_reset(&self) -> bool {
        self.0.load(Ordering::SeqCst) & RESET != 0
    }
}

/// The end of the task that reads the connection.
#[derive(Debug)]
pub(crate) struct Inbound {
    sender: Option<mpsc::Sender<Bytes>>,
    remote: RemoteState,
}

/// The end of the stream's reader.
#[derive(Debug)]
pub(crate) struct InboundSource {
    receiver: mpsc::Receiver<Bytes>,
    remote: RemoteState,
}

/// Both ends, and their shared state.
pub(crate) fn inbound() -> (Inbound, InboundSource, RemoteState) {
    let (sender, receiver) = mpsc::channel(WAITING_CHUNKS);
    let remote = RemoteState::default();
    let inbound = Inbound {
        sender: Some(sender),
        remote: remote.clone(),
    };
    let source = InboundSource {
        receiver,
        remote: remote.clone(),
    };
    (inbound, source, remote)
}

impl Inbound {
    /// The channel for bytes, if the reader still exists.
    pub(crate) fn sender(&self) -> Option<mpsc::Sender<Bytes>> {
        self.sender.clone()
    }

    /// The peer has finished its half.
    pub(crate) fn finish(&mut self) {
        self.remote.0.fetch_or(FINISHED, Ordering::SeqCst);
        self.sender = None;
    }

    /// The peer reset the stream.
    pub(crate) fn reset(&mut self) {
        self.remote.0.fetch_or(RESET, Ordering::SeqCst);
        self.sender = None;
    }

    /// The connection is lost.
    pub(crate) fn lose(&mut self) {
        self.sender = None;
    }
}

#[async_trait]
impl Source for InboundSource {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            match self.receiver.recv().await {
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => return Ok(Some(bytes)),
                None if self.remote.is_reset() => return Err(reset()),
                None if self.remote.0.load(Ordering::SeqCst) == FINISHED => return Ok(None),
                None => {
                    let lost = "the connection was lost";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, lost));
                }
            }
        }
    }
}

/// The error of a stream that the peer reset.
pub(crate) fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the peer reset the stream")
}
