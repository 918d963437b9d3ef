//! One stream of a connection.

use std::{io, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    frame::{LONGEST_DATA, ResetStatus},
    handle::Handle,
    header_block::Headers,
    outgoing::{ControlFrame, DataFrame},
};
use crate::{
    Sink, Source,
    inbound::{InboundSource, RemoteState, reset},
};

/// A stream, opened by the peer or by this side.
pub(crate) struct Stream {
    pub(crate) id: u32,
    /// The headers that it was opened with.
    pub(crate) headers: Headers,
    pub(crate) source: StreamSource,
    pub(crate) sink: StreamSink,
}

/// The connection's entry of a stream, until both of its halves are dropped.
struct StreamEntry {
    id: u32,
    handle: Arc<Handle>,
}

impl Drop for StreamEntry {
    fn drop(&mut self) {
        self.handle.inner.forget(self.id);
    }
}

/// Data from the peer.
pub(crate) struct StreamSource {
    inbound: InboundSource,
    _entry: Arc<StreamEntry>,
}

/// Data to the peer.
pub(crate) struct StreamSink {
    closed: bool,
    remote: RemoteState,
    entry: Arc<StreamEntry>,
}

impl Stream {
    pub(super) fn new(
        id: u32,
        headers: Headers,
        inbound: InboundSource,
        remote: RemoteState,
        handle: Arc<Handle>,
    ) -> Self {
        let entry = Arc::new(StreamEntry { id, handle });
        Self {
            id,
            headers,
            source: StreamSource {
                inbound,
                _entry: Arc::clone(&entry),
            },
            sink: StreamSink {
                closed: false,
                remote,
                entry,
            },
        }
    }

    /// Accepts a stream that the peer opened.
    pub(crate) fn accept(&self) -> io::Result<()> {
        let inner = &self.sink.entry.handle.inner;
        inner.control.push(ControlFrame::Reply(self.id))
    }

    /// Resets the stream in both directions.
    pub(crate) fn reset(mut self, status: ResetStatus) {
        self.sink.reset(status);
    }
}

impl StreamSink {
    /// Resets the stream.
    pub(crate) fn reset(&mut self, status: ResetStatus) {
        if !self.closed {
            self.closed = true;
            let entry = &self.entry;
            let frame = ControlFrame::Reset(entry.id, status);
            // If the connection is gone or stuck, so is the stream.
            let _ = entry.handle.inner.control.push(frame);
        }
    }

    async fn send(&self, bytes: Bytes, fin: bool) -> io::Result<()> {
        if self.remote.is_reset() {
            return Err(reset());
        }
        let frame = DataFrame::Data {
            stream: self.entry.id,
            fin,
            bytes,
        };
        self.entry.handle.send(frame).await
    }
}

#[async_trait]
impl Source for StreamSource {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        self.inbound.read().await
    }
}

#[async_trait]
impl Sink for StreamSink {
    async fn write(&mut self, mut bytes: Bytes) -> io::Result<()> {
        if self.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        while bytes.len() > LONGEST_DATA {
            self.send(bytes.split_to(LONGEST_DATA), false).await?;
        }
        self.send(bytes, false).await
    }

    async fn close(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        self.send(Bytes::new(), true).await
    }
}

impl Drop for StreamSink {
    fn drop(&mut self) {
        self.reset(ResetStatus::Cancel);
    }
}
