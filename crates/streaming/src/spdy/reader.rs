//! Buffered reads of frames from a connection.

use std::io;

use bytes::{Bytes, BytesMut};

use super::frame::{HEAD, Head, head};
use crate::Source;

/// Reads frames.
pub(super) struct FrameReader {
    source: Box<dyn Source>,
    held: Bytes,
}

impl FrameReader {
    pub(super) fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            held: Bytes::new(),
        }
    }

    /// The next head; `None` at the end of the connection.
    pub(super) async fn head(&mut self) -> io::Result<Option<Head>> {
        let Some(first) = self.some(HEAD).await? else {
            return Ok(None);
        };
        let bytes = self.complete(first, HEAD).await?;
        let bytes = bytes.first_chunk().ok_or_else(cut_off)?;
        head(*bytes).map(Some).map_err(invalid)
    }

    /// Exactly `length` bytes.
    pub(super) async fn exactly(&mut self, length: usize) -> io::Result<Bytes> {
        self.complete(Bytes::new(), length).await
    }

    /// At least one byte and at most `most`; `None` at the end of the connection.
    pub(super) async fn some(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        if self.held.is_empty() {
            match self.source.read().await? {
                Some(bytes) => self.held = bytes,
                None => return Ok(None),
            }
        }
        Ok(Some(self.held.split_to(most.min(self.held.len()))))
    }

    async fn complete(&mut self, first: Bytes, length: usize) -> io::Result<Bytes> {
        if first.len() == length {
            return Ok(first);
        }
        let mut bytes = BytesMut::from(&first[..]);
        while bytes.len() < length {
            let more = self.some(length - bytes.len()).await?;
            bytes.extend_from_slice(&more.ok_or_else(cut_off)?);
        }
        Ok(bytes.freeze())
    }
}

/// The connection ended within a frame.
pub(super) fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was cut off")
}

/// The peer violated the protocol.
pub(super) fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
