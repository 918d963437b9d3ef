//! Byte streams of a session, whatever carries them: a pipe, a terminal, a SPDY stream, a WebSocket
//! channel.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;

/// A source of bytes.
#[async_trait]
pub trait Source: Send {
    /// Waits for the next bytes, never empty ones; `None` at the end. A source holds no buffer while
    /// it waits, so that an idle session costs little. Cancel safe: nothing is lost when the future
    /// is dropped.
    ///
    /// # Errors
    /// The stream was reset, or the connection that carries it is gone.
    async fn read(&mut self) -> io::Result<Option<Bytes>>;
}

/// A sink of bytes.
#[async_trait]
pub trait Sink: Send {
    /// Writes all bytes; waits while the other end accepts none.
    ///
    /// # Errors
    /// The other end has stopped reading (`BrokenPipe`), or the connection is gone.
    async fn write(&mut self, bytes: Bytes) -> io::Result<()>;

    /// Writes pieces in their order, at once and without a copy where the other end permits that.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    async fn write_pieces(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        self.write(pieces.concat().into()).await
    }

    /// Signals that no more bytes follow. Written bytes arrive first. Later calls do nothing.
    ///
    /// # Errors
    /// The connection is gone.
    async fn close(&mut self) -> io::Result<()>;
}

/// Both directions of a connection. Closing the sink is a half-close: the source continues.
pub struct Duplex {
    /// Data from the other end.
    pub source: Box<dyn Source>,
    /// Data to the other end.
    pub sink: Box<dyn Sink>,
}

/// Copies until the source ends; then closes the sink.
///
/// # Errors
/// Either side failed.
pub async fn copy(source: &mut dyn Source, sink: &mut dyn Sink) -> io::Result<()> {
    while let Some(bytes) = source.read().await? {
        sink.write(bytes).await?;
    }
    sink.close().await
}
