//! Where the last N lines of a log begin, found from the end in blocks. A line is what the
//! container wrote up to a newline: its parts count once.

use std::io;

use crate::entry::{MAX_HEADER_BYTES, StdStream, parse_header};

/// Bytes that are read at a time.
const BLOCK: usize = 64 * 1024;

/// How many recorded lines may stand between two parts of one line. Without a bound, a stream that
/// wrote nothing else would have the whole log searched.
const MAX_LINES_BETWEEN_PARTS: u32 = 4096;

/// A file that can be read at any place.
pub(super) trait ReadAt {
    /// Bytes in the file.
    fn size(&self) -> io::Result<u64>;
    /// Fills `into`; fewer bytes mean the end of the file.
    fn fill_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for super::files::LogFile {
    fn size(&self) -> io::Result<u64> {
        self.len()
    }

    fn fill_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.read_at(offset, into)
    }
}

/// A place in a log of several files: index of the file and offset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Index of the file, the oldest is 0.
    pub(super) file: usize,
    /// Offset in the file.
    pub(super) offset: u64,
}

/// Where to start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// Read from here: a line that is wanted has its first part here.
    pub(super) read: Place,
    /// Lines that end before this place are not wanted.
    pub(super) show: Place,
}

/// Finds the start of the last `wanted` lines of `files`, oldest file first. A recorded line that
/// is still being written at the very end comes in addition.
pub(super) fn find<F: ReadAt>(
    files: &[F],
    wanted: u64,
    stream: Option<StdStream>,
) -> io::Result<Start> {
    let mut scan = Scan::new(wanted, stream);
    let last = files.len().saturating_sub(1);
    for (index, file) in files.iter().enumerate().rev() {
        let size = file.size()?;
        if index == last {
            let end = Place {
                file: index,
                offset: size,
            };
            scan.start = Start {
                read: end,
                show: end,
            };
        }
        let done = lines_from_end(file, size, |offset, head, complete| {
            let place = Place {
                file: index,
                offset,
            };
            if !complete && index == last {
                scan.start = Start {
                    read: place,
                    show: place,
                };
                return Step::On;
            }
            scan.line(place, head)
        })?;
        if done == Step::Done {
            break;
        }
    }
    Ok(scan.start)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    On,
    Done,
}

/// Counts lines, seen from the end.
struct Scan {
    wanted: u64,
    stream: Option<StdStream>,
    /// Lines found.
    found: u64,
    start: Start,
    /// Streams of which an entry was counted: their parts that come before belong to it.
    seen: [bool; 2],
    /// All wanted lines have ended; of these streams the first one may have parts further up.
    looking_for_parts: Option<[bool; 2]>,
    /// Recorded lines passed since then; the search is given up at a bound.
    passed: u32,
}

impl Scan {
    fn new(wanted: u64, stream: Option<StdStream>) -> Self {
        Self {
            wanted,
            stream,
            found: 0,
            start: Start::default(),
            seen: [false; 2],
            looking_for_parts: None,
            passed: 0,
        }
    }

    fn line(&mut self, place: Place, head: &[u8]) -> Step {
        let header = parse_header(head);
        if header.is_some_and(|h| self.stream.is_some_and(|wanted| wanted != h.stream)) {
            return Step::On;
        }
        let entry = header.map(|h| (h.stream as usize, h.partial));
        if let Some(looking) = self.looking_for_parts {
            return self.part(looking, place, entry);
        }
        // A part belongs to a line that was counted, unless it has no end yet.
        let ends_line = entry.is_none_or(|(stream, partial)| !partial || !self.seen[stream]);
        if ends_line && self.found == self.wanted {
            // This line is one too many. Only the other stream can have parts before it.
            let mut looking = self.seen;
            if let Some((stream, _)) = entry {
                looking[stream] = false;
            }
            self.looking_for_parts = Some(looking);
            return if looking == [false; 2] {
                Step::Done
            } else {
                Step::On
            };
        }
        self.found += u64::from(ends_line);
        if let Some((stream, _)) = entry {
            self.seen[stream] = true;
        }
        self.start = Start {
            read: place,
            show: place,
        };
        Step::On
    }

    fn part(&mut self, mut looking: [bool; 2], place: Place, entry: Option<(usize, bool)>) -> Step {
        if let Some((stream, partial)) = entry.filter(|(stream, _)| looking[*stream]) {
            if partial {
                self.start.read = place;
            } else {
                looking[stream] = false;
            }
        }
        self.passed += 1;
        self.looking_for_parts = Some(looking);
        if looking == [false; 2] || self.passed > MAX_LINES_BETWEEN_PARTS {
            Step::Done
        } else {
            Step::On
        }
    }
}

/// Calls `each` with offset, first bytes, and whether a newline ends it, for each recorded line,
/// the last one first, until it says that it is done.
fn lines_from_end<F: ReadAt>(
    file: &F,
    size: u64,
    mut each: impl FnMut(u64, &[u8], bool) -> Step,
) -> io::Result<Step> {
    let mut buffer = vec![0; BLOCK];
    // The line that was met last ends here, without its newline; at first the end of the file.
    let mut line_end = size;
    let mut complete = false;
    let mut right = size;
    while right > 0 {
        let left = right.saturating_sub(BLOCK as u64);
        let length = usize::try_from(right - left).expect("not more than a block");
        let block = &mut buffer[..length];
        if file.fill_at(left, block)? < length {
            // The file was cut under our hands: what is left will be read from its start.
            return Ok(Step::Done);
        }
        let mut search = length;
        while let Some(at) = block[..search].iter().rposition(|byte| *byte == b'\n') {
            search = at;
            let start = left + at as u64 + 1;
            if start < line_end || complete {
                let done = visit(file, (left, block), start, line_end, complete, &mut each)?;
                if done == Step::Done {
                    return Ok(done);
                }
            }
            line_end = start - 1;
            complete = true;
        }
        if left == 0 && (line_end > 0 || complete) {
            return visit(file, (left, block), 0, line_end, complete, &mut each);
        }
        right = left;
    }
    Ok(Step::On)
}

fn visit<F: ReadAt>(
    file: &F,
    (left, block): (u64, &[u8]),
    start: u64,
    end: u64,
    complete: bool,
    each: &mut impl FnMut(u64, &[u8], bool) -> Step,
) -> io::Result<Step> {
    // One byte more than a header may have, so that a longer one is seen to be too long.
    let want = usize::try_from(end - start)
        .unwrap_or(usize::MAX)
        .min(MAX_HEADER_BYTES + 1);
    let from = usize::try_from(start - left).expect("lines start in the block");
    if let Some(head) = block.get(from..from + want) {
        return Ok(each(start, head, complete));
    }
    let mut head = [0; MAX_HEADER_BYTES + 1];
    let read = file.fill_at(start, &mut head[..want])?;
    Ok(each(start, &head[..read], complete))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ReadAt for Vec<u8> {
        fn size(&self) -> io::Result<u64> {
            Ok(self.len() as u64)
        }

        fn fill_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            let rest = &self[usize::try_from(offset).expect("small").min(self.len())..];
            let read = rest.len().min(into.len());
            into[..read].copy_from_slice(&rest[..read]);
            Ok(read)
        }
    }

    fn entry(stream: &str, tag: &str, content: &str) -> String {
        format!("2024-01-01T00:00:00Z {stream} {tag} {content}\n")
    }

    fn at(files: &[String], wanted: u64) -> Start {
        let files: Vec<Vec<u8>> = files.iter().map(|text| text.clone().into_bytes()).collect();
        find(&files, wanted, None).expect("memory can be read")
    }

    fn place(file: usize, offset: usize) -> Place {
        Place {
            file,
            offset: offset as u64,
        }
    }

    #[test]
    fn counts_lines_and_not_their_parts() {
        let (a, b, c) = (
            entry("stdout", "F", "a"),
            entry("stdout", "P", "b"),
            entry("stdout", "F", "c"),
        );
        let log = [format!("{a}{b}{b}{c}")];
        assert_eq!(at(&log, 1).show, place(0, a.len()));
        assert_eq!(at(&log, 2).show, place(0, 0));
        assert_eq!(at(&log, 9).show, place(0, 0));
        assert_eq!(at(&log, 0).show, place(0, log[0].len()));
    }

    #[test]
    fn a_line_that_begins_before_the_last_one_that_is_not_wanted_is_kept_whole() {
        let (part, other, end) = (
            entry("stdout", "P", "a"),
            entry("stderr", "F", "x"),
            entry("stdout", "F", "b"),
        );
        let log = [format!("{other}{part}{other}{end}")];
        let start = at(&log, 1);
        assert_eq!(start.read, place(0, other.len()));
        assert_eq!(start.show, place(0, other.len() + part.len() + other.len()));
    }

    #[test]
    fn goes_on_in_the_file_before() {
        let (a, b) = (entry("stdout", "F", "a"), entry("stdout", "F", "b"));
        let log = [format!("{a}{b}"), String::new(), b.clone()];
        assert_eq!(at(&log, 1).show, place(2, 0));
        assert_eq!(at(&log, 2).show, place(0, a.len()));
        assert_eq!(at(&log, 3).show, place(0, 0));
    }

    #[test]
    fn a_line_being_written_comes_in_addition() {
        let a = entry("stdout", "F", "a");
        let log = [format!("{a}{a}2024-01-01T00:00:00Z std")];
        assert_eq!(at(&log, 0).show, place(0, 2 * a.len()));
        assert_eq!(at(&log, 1).show, place(0, a.len()));
    }

    #[test]
    fn lines_that_are_not_of_the_format_count() {
        let log = ["x\n\ny\n".to_owned()];
        assert_eq!(at(&log, 1).show, place(0, 3));
        assert_eq!(at(&log, 2).show, place(0, 2));
        assert_eq!(at(&log, 3).show, place(0, 0));
    }

    #[test]
    fn lines_may_be_longer_than_a_block() {
        let long = entry("stdout", "F", &"x".repeat(3 * BLOCK));
        let short = entry("stdout", "F", "x");
        let log = [format!("{short}{long}{short}{long}")];
        assert_eq!(at(&log, 1).show, place(0, 2 * short.len() + long.len()));
        assert_eq!(at(&log, 3).show, place(0, short.len()));
    }
}
