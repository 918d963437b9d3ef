//! From recorded lines to what a reader asked for: parts of a line joined, other streams and older
//! lines left out, timestamps put in front, the byte limit kept. No effects.

use jiff::Timestamp;

use super::pieces::{MAX_HELD, Piece};
use crate::entry::{Header, StdStream, parse_header, push_fixed_width};

/// What to show of each line.
#[derive(Debug, Clone, Default)]
pub(super) struct Show {
    /// Put the time of recording in front.
    pub(super) timestamps: bool,
    /// Only lines recorded at or after this time.
    pub(super) since: Option<Timestamp>,
    /// Only this stream.
    pub(super) stream: Option<StdStream>,
    /// End after so many bytes.
    pub(super) limit: Option<u64>,
}

/// Joins, filters and writes lines. Lines of the two streams that were recorded interleaved are
/// taken apart, so long as a line stays below [`MAX_HELD`].
#[derive(Debug)]
pub(super) struct Render {
    show: Show,
    out: Vec<u8>,
    /// Bytes that may still be written.
    remaining: u64,
    /// Per stream, the line that has not ended.
    lines: [Line; 2],
    /// The stream whose unfinished line is written so far that only its rest is missing.
    open: Option<StdStream>,
    /// What the pieces that continue a recorded line belong to.
    current: Option<Recorded>,
    /// Whether the last line with a time was shown. A line without a time goes with it.
    shown: bool,
    /// Lines are read, to know how they go on, but not shown.
    muted: bool,
}

/// A container's line, on its way.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    begun: bool,
    shown: bool,
    /// The next part starts a new row, for the row before was broken off.
    prefix_due: bool,
}

#[derive(Debug, Clone, Copy)]
enum Recorded {
    /// An entry of a stream; when it ends, the container's line ends unless it is partial.
    Entry(StdStream, bool),
    /// Not of the CRI format.
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

    /// What was written since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes the next piece of the log.
    pub(super) fn piece(&mut self, piece: Piece<'_>) {
        let content = if piece.begins {
            match parse_header(piece.bytes) {
                Some(header) => {
                    self.begin_entry(&header);
                    &piece.bytes[header.content_at..]
                }
                None => {
                    self.break_open();
                    self.current = Some(Recorded::Raw);
                    piece.bytes
                }
            }
        } else {
            piece.bytes
        };
        match self.current {
            Some(Recorded::Entry(stream, partial)) => {
                self.append(stream, content);
                if piece.ends && !partial {
                    self.end_line(stream);
                }
            }
            Some(Recorded::Raw) if self.shown => {
                self.write(content);
                if piece.ends {
                    self.write(b"\n");
                }
            }
            Some(Recorded::Raw | Recorded::Hidden) | None => {}
        }
    }

    /// Nothing more is there for now: shows a line that has begun, so that a prompt without
    /// newline is seen by those who follow.
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

    /// The log has ended: shows lines that have no end.
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
            self.current = Some(Recorded::Hidden);
            return;
        }
        self.current = Some(Recorded::Entry(stream, header.partial));
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
        // Its buffer serves the next line.
        let mut bytes = line.bytes;
        bytes.clear();
        bytes.shrink_to(MAX_HELD / 16);
        self.line(stream).bytes = bytes;
    }

    /// Writes what there is of an unfinished line; its rest is written as it comes.
    fn show_begun(&mut self, stream: StdStream) {
        let bytes = std::mem::take(&mut self.line(stream).bytes);
        self.write(&bytes);
        if !self.muted {
            self.open = Some(stream);
        }
    }

    /// Another line must be written while one is open: ends the row, and the open line goes on in
    /// a row of its own.
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
mod tests {
    use super::{super::pieces::Pieces, *};

    const T0: &str = "2024-01-01T00:00:00Z";
    const T1: &str = "2024-01-01T00:00:01.5Z";

    fn render(show: Show, log: &str) -> String {
        let mut render = Render::new(show);
        let mut pieces = Pieces::starting_at(0);
        pieces.feed(log.as_bytes(), |piece| render.piece(piece));
        pieces.finish(|piece| render.piece(piece));
        render.finish();
        String::from_utf8(render.take()).expect("text")
    }

    fn plain(log: &str) -> String {
        render(Show::default(), log)
    }

    #[test]
    fn parts_of_a_line_are_joined_also_between_lines_of_the_other_stream() {
        let log = format!("{T0} stdout P a\n{T0} stderr P x\n{T1} stdout F b\n{T1} stderr F y\n");
        assert_eq!(plain(&log), "ab\nxy\n");
        let stamped = render(
            Show {
                timestamps: true,
                ..Show::default()
            },
            &log,
        );
        assert_eq!(
            stamped,
            "2024-01-01T00:00:00.000000000Z ab\n2024-01-01T00:00:00.000000000Z xy\n"
        );
    }

    #[test]
    fn a_line_without_end_is_shown_at_the_end_of_the_log() {
        assert_eq!(plain(&format!("{T0} stdout P half")), "half");
        assert_eq!(plain(&format!("{T0} stdout F no newline")), "no newline\n");
        assert_eq!(
            plain(&format!("{T0} stdout P a\n{T0} stderr P b\n")),
            "a\nb"
        );
    }

    #[test]
    fn empty_lines_and_blanks_are_kept() {
        assert_eq!(
            plain(&format!(
                "{T0} stdout F \n{T0} stdout F   x \n{T0} stdout F\n"
            )),
            "\n  x \n\n"
        );
    }

    #[test]
    fn lines_that_are_not_of_the_format_are_passed_through() {
        let log = format!("garbage\n{T0} stdout F a\n{{\"log\":1}}\n\n{T0} stdout F b\n");
        assert_eq!(plain(&log), "garbage\na\n{\"log\":1}\n\nb\n");
    }

    #[test]
    fn since_leaves_out_older_lines_and_what_belongs_to_them() {
        let since = Some("2024-01-01T00:00:01Z".parse().expect("a time"));
        let log = format!(
            "{T0} stdout F old\ngarbage\n{T0} stdout P be\n{T1} stdout F gun\n{T1} stdout F new\nmore\n"
        );
        assert_eq!(
            render(
                Show {
                    since,
                    ..Show::default()
                },
                &log
            ),
            "new\nmore\n"
        );
    }

    #[test]
    fn one_stream_is_shown_alone() {
        let log = format!("{T0} stdout F out\n{T0} stderr P er\n{T0} stderr F r\n");
        for (stream, shown) in [(StdStream::Stdout, "out\n"), (StdStream::Stderr, "err\n")] {
            assert_eq!(
                render(
                    Show {
                        stream: Some(stream),
                        ..Show::default()
                    },
                    &log
                ),
                shown
            );
        }
    }

    #[test]
    fn the_limit_counts_what_is_shown_and_cuts_within_a_line() {
        let log = format!("{T0} stdout F 12345\n{T0} stdout F 67890\n");
        for (limit, shown) in [
            (0, ""),
            (3, "123"),
            (6, "12345\n"),
            (8, "12345\n67"),
            (99, "12345\n67890\n"),
        ] {
            assert_eq!(
                render(
                    Show {
                        limit: Some(limit),
                        ..Show::default()
                    },
                    &log
                ),
                shown
            );
        }
    }

    #[test]
    fn a_prompt_is_shown_before_its_line_ends_and_other_lines_break_it_off() {
        let mut render = Render::new(Show {
            timestamps: true,
            ..Show::default()
        });
        let mut pieces = Pieces::starting_at(0);
        let mut feed = |render: &mut Render, log: &str| {
            pieces.feed(log.as_bytes(), |piece| render.piece(piece));
            render.pause();
            String::from_utf8(render.take()).expect("text")
        };
        let (t0, t1) = (
            "2024-01-01T00:00:00.000000000Z",
            "2024-01-01T00:00:01.500000000Z",
        );
        assert_eq!(feed(&mut render, &format!("{T0} stdout P name")), "");
        assert_eq!(feed(&mut render, "? \n"), format!("{t0} name? "));
        assert_eq!(feed(&mut render, &format!("{T1} stdout P Joe \n")), "Joe ");
        assert_eq!(
            feed(&mut render, &format!("{T1} stderr F warn\n")),
            format!("\n{t1} warn\n")
        );
        assert_eq!(
            feed(&mut render, &format!("{T1} stdout F Doe\n")),
            format!("{t1} Doe\n")
        );
    }

    #[test]
    fn a_line_longer_than_the_bound_is_shown_as_it_comes() {
        let part = "x".repeat(MAX_HELD / 2);
        let log: String = (0..5).map(|_| format!("{T0} stdout P {part}\n")).collect();
        let shown = plain(&format!(
            "{log}{T0} stdout F end\n{T0} stdout F {part}{part}{part}\n"
        ));
        assert_eq!(
            shown,
            format!("{}end\n{}\n", part.repeat(5), part.repeat(3))
        );
    }
}
