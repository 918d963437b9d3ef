//! Bridges a thread that reads or writes files and an asynchronous connection.

use std::io::{self, Read, Write};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::sync::mpsc;

/// Size of one chunk.
const PIECE: usize = 64 << 10;

/// Reads from a channel. Blocks.
pub struct StreamReader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    now: Bytes,
}

impl StreamReader {
    /// Ends with the channel.
    #[must_use]
    pub fn new(pieces: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        let now = Bytes::new();
        Self { pieces, now }
    }
}

impl Read for StreamReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.now = piece?,
                None => return Ok(0),
            }
        }
        let read = self.now.len().min(buffer.len());
        self.now.copy_to_slice(&mut buffer[..read]);
        Ok(read)
    }
}

/// Writes into a channel. Blocks.
pub struct StreamWriter {
    pieces: mpsc::Sender<Bytes>,
    now: BytesMut,
}

impl StreamWriter {
    /// Waits while the channel is full.
    #[must_use]
    pub fn new(pieces: mpsc::Sender<Bytes>) -> Self {
        let now = BytesMut::new();
        Self { pieces, now }
    }
}

impl Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.now.reserve(PIECE);
        self.now.extend_from_slice(bytes);
        if self.now.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.now.is_empty() {
            return Ok(());
        }
        let sent = self.pieces.blocking_send(self.now.split().freeze());
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
