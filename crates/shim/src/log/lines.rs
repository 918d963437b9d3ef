//! Splits a stream into entries. Whole lines are full entries; pieces of a line longer than the
//! limit, and a last line without a newline, are partial ones.

use memchr::memchr;
use rubelet_logs::entry::StdStream;

use super::write_entry;

/// One stream of a container, between two reads.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    stream: StdStream,
    /// Most bytes of an entry's content.
    longest: usize,
    /// An incomplete line.
    begun: Vec<u8>,
}

impl LineSplitter {
    /// A new stream. `longest` 0 means no limit, which is capped to one megabyte to bound the
    /// shim's memory.
    pub(crate) fn new(stream: StdStream, longest: usize) -> Self {
        let most = 1 << 20;
        let longest = if longest == 0 {
            most
        } else {
            longest.min(most)
        };
        Self {
            stream,
            longest,
            begun: Vec::new(),
        }
    }

    /// Appends the entries that are complete after this read.
    pub(crate) fn push(&mut self, mut read: &[u8], stamp: &str, batch: &mut Vec<u8>) {
        loop {
            let room = self.longest - self.begun.len();
            // A line of exactly the limit is a full entry: look one byte further for its newline.
            let window = &read[..read.len().min(room + 1)];
            if let Some(end) = memchr(b'\n', window) {
                let text = [&self.begun[..], &read[..end]];
                write_entry(batch, stamp, self.stream, false, text);
                read = &read[end + 1..];
            } else if read.len() > room {
                let text = [&self.begun[..], &read[..room]];
                write_entry(batch, stamp, self.stream, true, text);
                read = &read[room..];
            } else {
                self.begun.extend_from_slice(read);
                return;
            }
            self.begun = Vec::new();
        }
    }

    /// The stream ended: the rest is a partial entry.
    pub(crate) fn end(&mut self, stamp: &str, batch: &mut Vec<u8>) {
        let begun = std::mem::take(&mut self.begun);
        if !begun.is_empty() {
            write_entry(batch, stamp, self.stream, true, [&begun, b""]);
        }
    }
}
