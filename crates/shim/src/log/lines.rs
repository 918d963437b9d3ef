//! Cuts a stream into entries. Whole lines are full entries; a line longer than the limit, and one
//! that ends with the stream, are partial ones.

use rubelet_logs::entry::StdStream;

use super::write_entry;

/// One stream of a container, between two reads.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: StdStream,
    /// Longest content of an entry.
    longest: usize,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl Lines {
    /// A stream of which nothing was read. `longest` 0 is no limit, which is taken as one megabyte:
    /// a container can't make the shim hold more.
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

    /// Takes what was read, and appends the entries that are complete with it.
    pub(crate) fn push(&mut self, mut read: &[u8], stamp: &str, batch: &mut Vec<u8>) {
        loop {
            let room = self.longest - self.begun.len();
            // A line of exactly the limit is still a full entry, so its newline may come one later.
            let window = &read[..read.len().min(room + 1)];
            if let Some(end) = window.iter().position(|byte| *byte == b'\n') {
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

    /// The stream has ended: what is left is a partial entry.
    pub(crate) fn end(&mut self, stamp: &str, batch: &mut Vec<u8>) {
        let begun = std::mem::take(&mut self.begun);
        if !begun.is_empty() {
            write_entry(batch, stamp, self.stream, true, [&begun, b""]);
        }
    }
}
