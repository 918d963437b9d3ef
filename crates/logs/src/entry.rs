//! One recorded line of a container's log: `TIMESTAMP STREAM TAGS CONTENT`, as the CRI defines it.

use jiff::Timestamp;

/// A recorded line whose header is longer than this many bytes is not of the CRI format. The
/// longest real one has 44: a timestamp with offset, `stderr`, a tag, three blanks.
pub const MAX_HEADER_BYTES: usize = 128;

/// Which of its two outputs a container wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StdStream {
    /// `stdout`.
    Stdout,
    /// `stderr`.
    Stderr,
}

impl StdStream {
    /// The word that stands in the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What stands before the content of a recorded line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// When the runtime read the content from the container.
    pub time: Timestamp,
    /// The same as recorded, with the runtime's own offset and number of digits.
    pub time_text: &'a str,
    /// Where the container wrote it.
    pub stream: StdStream,
    /// Tag `P`: the container's line goes on in the next entry of this stream. Otherwise `F`.
    pub partial: bool,
    /// Where the content begins in the recorded line.
    pub content_at: usize,
}

/// Reads the header of a recorded line, given without its newline. `None` if the line is not of
/// the CRI format. Tags after the first one are left for later versions of the format.
#[must_use]
pub fn parse_header(line: &[u8]) -> Option<Header<'_>> {
    let head = &line[..line.len().min(MAX_HEADER_BYTES)];
    let time_end = blank(head, 0)?;
    let stream_end = blank(head, time_end + 1)?;
    let tags_start = stream_end + 1;
    // The blank behind the tags is missing where a runtime trims empty lines.
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
/// fixed-width form of RFC 3339 that `kubectl logs --timestamps` shows.
pub fn push_fixed_width(text: &str, out: &mut Vec<u8>) {
    let zone = text
        .find(['Z', 'z', '+'])
        .or_else(|| text.rfind('-').filter(|at| *at > "2006-01-02".len()))
        .unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone);
    let (seconds, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    out.extend_from_slice(seconds.as_bytes());
    out.push(b'.');
    out.extend(fraction.bytes().chain(std::iter::repeat(b'0')).take(9));
    out.extend_from_slice(zone.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_lines_runtimes_write() {
        for (line, stream, partial, content) in [
            (
                "2016-10-06T00:17:09.669794202Z stdout P log content 1",
                "stdout",
                true,
                "log content 1",
            ),
            (
                "2016-10-06T00:17:09.669794203Z stderr F log content 2",
                "stderr",
                false,
                "log content 2",
            ),
            ("2016-10-06T00:17:09Z stdout F ", "stdout", false, ""),
            ("2016-10-06T00:17:09Z stdout F", "stdout", false, ""),
            (
                "2016-10-06T02:17:09.5+02:00 stdout P:later:tags  two",
                "stdout",
                true,
                " two",
            ),
            (
                "2016-10-06T00:17:09Z stdout X later",
                "stdout",
                false,
                "later",
            ),
        ] {
            let header = parse_header(line.as_bytes()).expect(line);
            assert_eq!(header.stream.as_str(), stream, "{line}");
            assert_eq!(header.partial, partial, "{line}");
            assert_eq!(&line[header.content_at..], content, "{line}");
        }
    }

    #[test]
    fn the_offset_of_the_recorded_time_counts() {
        let header = parse_header(b"2016-10-06T02:17:09.5+02:00 stdout F x").expect("a header");
        assert_eq!(
            header.time,
            "2016-10-06T00:17:09.5Z"
                .parse::<Timestamp>()
                .expect("a time")
        );
    }

    #[test]
    fn other_lines_are_not_of_the_format() {
        for line in [
            "",
            "panic: something",
            "2016-10-06T00:17:09Z",
            "2016-10-06T00:17:09Z stdout",
            "2016-10-06T00:17:09Z stdin F x",
            "yesterday stdout F x",
            "2016-10-06T00:17:09Z stdout  x",
            r#"{"log":"x\n","stream":"stdout","time":"2016-10-06T00:17:09Z"}"#,
        ] {
            assert_eq!(parse_header(line.as_bytes()), None, "{line}");
        }
        let endless = format!("2016-10-06T00:17:09Z stdout {}", "F".repeat(200));
        assert_eq!(parse_header(endless.as_bytes()), None);
    }

    #[test]
    fn shown_timestamps_have_nine_digits_and_keep_their_offset() {
        for (recorded, shown) in [
            (
                "2016-10-06T00:17:09.669794202Z",
                "2016-10-06T00:17:09.669794202Z",
            ),
            ("2016-10-06T00:17:09.66Z", "2016-10-06T00:17:09.660000000Z"),
            ("2016-10-06T00:17:09Z", "2016-10-06T00:17:09.000000000Z"),
            (
                "2016-10-06T00:17:09.5+02:00",
                "2016-10-06T00:17:09.500000000+02:00",
            ),
            (
                "2016-10-06T00:17:09-07:00",
                "2016-10-06T00:17:09.000000000-07:00",
            ),
        ] {
            let mut out = Vec::new();
            push_fixed_width(recorded, &mut out);
            assert_eq!(str::from_utf8(&out), Ok(shown));
        }
    }
}
