//! Logs in whole lines, so that lines of several containers can be interleaved.

use bytes::{Bytes, BytesMut};

use crate::agent::ResponseStream;

/// A longer line is printed in parts, so that one that never ends takes no memory.
const LONGEST: usize = 1 << 20;

/// The lines of one log.
pub(super) struct Lines {
    pieces: ResponseStream,
    pending: BytesMut,
}

impl Lines {
    pub(super) fn of(pieces: ResponseStream) -> Self {
        Self {
            pieces,
            pending: BytesMut::new(),
        }
    }

    /// The next line with its line feed, which is added to the last one if it has none; `None` at
    /// the end.
    ///
    /// # Errors
    /// The log was truncated.
    pub(super) async fn next(&mut self) -> Option<anyhow::Result<Bytes>> {
        loop {
            if let Some(line) = self.take() {
                return Some(Ok(line));
            }
            match self.pieces.next().await {
                Some(Ok(piece)) => self.pending.extend_from_slice(&piece),
                Some(Err(error)) => return Some(Err(error)),
                None if self.pending.is_empty() => return None,
                None => self.pending.extend_from_slice(b"\n"),
            }
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        let end = self.pending.iter().position(|byte| *byte == b'\n');
        let end = match end {
            Some(end) => end + 1,
            None if self.pending.len() > LONGEST => LONGEST,
            None => return None,
        };
        Some(self.pending.split_to(end).freeze())
    }
}
