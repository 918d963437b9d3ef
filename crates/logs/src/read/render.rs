//! Renders recorded lines as requested: joins partial lines, filters by stream and time, adds
//! timestamps, applies the byte limit. Pure.

use jiff::Timestamp;

use super::pieces::{MAX_HELD, Piece};
use crate::entry::{Header, StdStream, parse_header, push_fixed_width};

/// What to print of each line.
#[derive(Debug, Clone, Default)]
pub(super) struct Show {
    /// Prefix with the timestamp.
    pub(super) timestamps: bool,
    /// Only lines recorded at or after this time.
    pub(super) since: Option<Timestamp>,
    /// Only this stream.
    pub(super) stream: Option<StdStream>,
    /// Stop after this many bytes.
    pub(super) limit: Option<u64>,
}

/// Joins, filters and writes lines. Interleaved lines of the two streams are separated if they are
/// shorter than [`MAX_HELD`].
#[derive(Debug)]
pub(super) struct Render {
    show: Show,
    out: Vec<u8>,
    /// Bytes that may still be written.
    remaining: u64,
    /// The unfinished line of each stream.
    lines: [Line; 2],
    /// The stream whose unfinished line is written up to its last part.
    open: Option<StdStream>,
    /// The entry that the following pieces of a recorded line belong to.
    current: Option<LogEntry>,
    /// Whether the last line with a timestamp was shown. It also decides about following lines
    /// without one.
    shown: bool,
    /// Lines are parsed, to know how they continue, but not shown.
    muted: bool,
}

/// A container's line, not complete yet.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    begun: bool,
    shown: bool,
    /// The next part starts a new row, because another line interrupted the one before.
    prefix_due: bool,
}

#[derive(Debug, Clone, Copy)]
enum LogEntry {
    /// An entry of a stream; its end also ends the container's line unless it is partial.
    Entry(StdStream, bool),
    /// Not in the CRI format.
    Raw,
    /// Filtered out.
    Hidden,
}

impl Render {
    pub(super) fn new(show: Show) -> Self {
        let remaining = show.limit.unwrap_or(u64::MAX);
        Self {
            show,
            out: Vec::new(),
            remaining,
            lines: [Line::default(), Line::default()],
            open: None,
            current: None,
            shown: true,
            muted: false,
        }
    }

    /// While muted, lines that end are not shown.
    pub(super) fn mute(&mut self, muted: bool) {
        self.muted = muted;
    }

    /// True when the byte limit is reached: nothing more will be written.
    pub(super) fn is_full(&self) -> bool {
        self.remaining == 0
    }

    /// The bytes written since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Processes the next piece of the log.
    pub(super) fn piece(&mut self, piece: Piece<'_>) {
        let content = if piece.begins {
            match parse_header(piece.bytes) {
                Some(header) => {
                    self.begin_entry(&header);
                    &piece.bytes[header.content_at..]
                }
                None => {
                    self.break_open();
                    self.current = Some(LogEntry::Raw);
                    piece.bytes
                }
            }
        } else {
            piece.bytes
        };
        match self.current {
            Some(LogEntry::Entry(stream, partial)) => {
                self.append(stream, content);
                if piece.ends && !partial {
                    self.end_line(stream);
                }
            }
            Some(LogEntry::Raw) if self.shown => {
                self.write(content);
                if piece.ends {
                    self.write(b"\n");
                }
            }
            Some(LogEntry::Raw | LogEntry::Hidden) | None => {}
        }
    }

    /// No more data for now: shows an unfinished line, so that followers see a prompt without
    /// newline.
    pub(super) fn pause(&mut self) {
        if self.open.is_some() || self.muted {
            return;
        }
        for stream in [StdStream::Stdout, StdStream::Stderr] {
            if !self.line(stream).bytes.is_empty() {
                self.show_begun(stream);
                return;
            }
        }
    }

    /// The log has ended: shows unfinished lines.
    pub(super) fn finish(&mut self) {
        for stream in [StdStream::Stdout, StdStream::Stderr] {
            if !self.line(stream).bytes.is_empty() {
                self.break_open();
                self.show_begun(stream);
            }
        }
    }

    fn line(&mut self, stream: StdStream) -> &mut Line {
        &mut self.lines[stream as usize]
    }

    fn begin_entry(&mut self, header: &Header<'_>) {
        let stream = header.stream;
        if self.show.stream.is_some_and(|wanted| wanted != stream) {
            self.current = Some(LogEntry::Hidden);
            return;
        }
        self.current = Some(LogEntry::Entry(stream, header.partial));
        let shown = self.show.since.is_none_or(|since| header.time >= since);
        let timestamps = self.show.timestamps;
        let line = self.line(stream);
        let first = !line.begun;
        if first {
            line.begun = true;
            line.shown = shown;
        }
        if timestamps && (first || std::mem::take(&mut line.prefix_due)) && line.shown {
            push_fixed_width(header.time_text, &mut line.bytes);
            line.bytes.push(b' ');
        }
        if first {
            self.shown = shown;
        }
    }

    fn append(&mut self, stream: StdStream, content: &[u8]) {
        if !self.line(stream).shown {
            return;
        }
        if self.open == Some(stream) {
            self.write(content);
            return;
        }
        let line = self.line(stream);
        line.bytes.extend_from_slice(content);
        if line.bytes.len() > MAX_HELD {
            self.break_open();
            self.show_begun(stream);
        }
    }

    fn end_line(&mut self, stream: StdStream) {
        let line = std::mem::take(self.line(stream));
        if line.shown {
            if self.open == Some(stream) {
                self.open = None;
            } else {
                self.break_open();
                self.write(&line.bytes);
            }
            self.write(b"\n");
        }
        // Reuses the buffer for the next line.
        let mut bytes = line.bytes;
        bytes.clear();
        bytes.shrink_to(MAX_HELD / 16);
        self.line(stream).bytes = bytes;
    }

    /// Writes the present part of an unfinished line; the rest is written as it arrives.
    fn show_begun(&mut self, stream: StdStream) {
        let bytes = std::mem::take(&mut self.line(stream).bytes);
        self.write(&bytes);
        if !self.muted {
            self.open = Some(stream);
        }
    }

    /// Another line must be written while one is open: ends the row, and the open line continues in
    /// a new row.
    fn break_open(&mut self) {
        if let Some(stream) = self.open.take() {
            self.write(b"\n");
            self.line(stream).prefix_due = true;
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.muted {
            return;
        }
        let take = bytes
            .len()
            .min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        self.out.extend_from_slice(&bytes[..take]);
        self.remaining -= take as u64;
    }
}

#[cfg(test)]
mod tests;
