//! One entry of a container's log: `TIMESTAMP STREAM TAGS CONTENT`, as the CRI defines it.

use jiff::Timestamp;

/// A recorded line whose header is longer than this is not in the CRI format. The longest real one
/// has 44 bytes: a timestamp with offset, `stderr`, a tag, three spaces.
pub(crate) const MAX_HEADER_BYTES: usize = 128;

/// The output stream that a container wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StdStream {
    /// `stdout`.
    Stdout,
    /// `stderr`.
    Stderr,
}

impl StdStream {
    /// Its name in the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The header of a recorded line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// When the runtime read the content from the container.
    pub time: Timestamp,
    /// The same as recorded, with the runtime's own offset and number of digits.
    pub time_text: &'a str,
    /// The output stream.
    pub stream: StdStream,
    /// Tag `P`: the next entry of this stream continues the container's line. Otherwise `F`.
    pub partial: bool,
    /// Where the content begins in the recorded line.
    pub content_at: usize,
}

/// Parses the header of a recorded line, given without its newline. `None` if the line is not in
/// the CRI format. Tags after the first one are ignored: they are reserved for later versions.
#[must_use]
pub fn parse_header(line: &[u8]) -> Option<Header<'_>> {
    let head = &line[..line.len().min(MAX_HEADER_BYTES)];
    let time_end = blank(head, 0)?;
    let stream_end = blank(head, time_end + 1)?;
    let tags_start = stream_end + 1;
    // Some runtimes trim empty lines, and so omit the space after the tags.
    let (tags_end, content_at) = match blank(head, tags_start) {
        Some(end) => (end, end + 1),
        None if line.len() == head.len() => (head.len(), head.len()),
        None => return None,
    };
    let time_text = str::from_utf8(&head[..time_end]).ok()?;
    let stream = match &head[time_end + 1..stream_end] {
        b"stdout" => StdStream::Stdout,
        b"stderr" => StdStream::Stderr,
        _ => return None,
    };
    let partial = match head[tags_start..tags_end]
        .split(|byte| *byte == b':')
        .next()?
    {
        b"P" => true,
        b"" => return None,
        _ => false,
    };
    Some(Header {
        time: time_text.parse().ok()?,
        time_text,
        stream,
        partial,
        content_at,
    })
}

fn blank(head: &[u8], from: usize) -> Option<usize> {
    head.get(from..)?
        .iter()
        .position(|byte| *byte == b' ')
        .map(|at| from + at)
}

/// Appends a recorded timestamp with exactly nine digits of fraction, the offset as recorded: the
/// fixed-width form of RFC 3339 that `kubectl logs --timestamps` shows. CRI-O writes no offset as
/// `+00:00`.
pub(crate) fn push_fixed_width(text: &str, out: &mut Vec<u8>) {
    let zone = text
        .find(['Z', 'z', '+'])
        .or_else(|| text.rfind('-').filter(|at| *at > "2006-01-02".len()))
        .unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone);
    let (seconds, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    out.extend_from_slice(seconds.as_bytes());
    out.push(b'.');
    out.extend(fraction.bytes().chain(std::iter::repeat(b'0')).take(9));
    let zone = if zone == "+00:00" { "Z" } else { zone };
    out.extend_from_slice(zone.as_bytes());
}

#[cfg(test)]
mod tests;
