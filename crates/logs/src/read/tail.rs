//! Finds where the last N lines of a log begin, reading blocks from the end. A line is what the
//! container wrote up to a newline: its parts count once.

use std::io;

use crate::entry::{MAX_HEADER_BYTES, StdStream, parse_header};

/// Size of a read.
const BLOCK: usize = 64 * 1024;

/// Maximum number of recorded lines between two parts of one line. Without a limit, a stream with
/// no other lines would cause a search of the whole log.
const MAX_LINES_BETWEEN_PARTS: u32 = 4096;

/// A file with random access.
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

/// A position in a log of several files: index of the file and offset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogOffset {
    /// Index of the file, the oldest is 0.
    pub(super) file: usize,
    /// Offset in the file.
    pub(super) offset: u64,
}

/// Where to start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// Read from here: the first part of the first requested line.
    pub(super) read: LogOffset,
    /// Lines that end before this offset are not requested.
    pub(super) show: LogOffset,
}

/// Finds the start of the last `requested` lines of `files`, oldest file first. A recorded line
/// that is still being written at the very end is additional.
pub(super) fn find<F: ReadAt>(
    files: &[F],
    requested: u64,
    stream: Option<StdStream>,
) -> io::Result<Start> {
    let mut scan = Scan::new(requested, stream);
    let last = files.len().saturating_sub(1);
    for (index, file) in files.iter().enumerate().rev() {
        let size = file.size()?;
        if index == last {
            let end = LogOffset {
                file: index,
                offset: size,
            };
            scan.start = Start {
                read: end,
                show: end,
            };
        }
        let done = lines_from_end(file, size, |offset, head, complete| {
            let place = LogOffset {
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

/// Counts lines from the end.
struct Scan {
    requested: u64,
    stream: Option<StdStream>,
    /// Lines found.
    found: u64,
    start: Start,
    /// Streams with a counted entry: earlier parts of the same line belong to it.
    seen: [bool; 2],
    /// All requested lines are found; the first one of these streams may have earlier parts.
    looking_for_parts: Option<[bool; 2]>,
    /// Recorded lines passed since then; the search stops at a limit.
    passed: u32,
}

impl Scan {
    fn new(requested: u64, stream: Option<StdStream>) -> Self {
        Self {
            requested,
            stream,
            found: 0,
            start: Start::default(),
            seen: [false; 2],
            looking_for_parts: None,
            passed: 0,
        }
    }

    fn line(&mut self, place: LogOffset, head: &[u8]) -> Step {
        let header = parse_header(head);
        if header.is_some_and(|h| self.stream.is_some_and(|requested| requested != h.stream)) {
            return Step::On;
        }
        let entry = header.map(|h| (h.stream as usize, h.partial));
        if let Some(looking) = self.looking_for_parts {
            return self.part(looking, place, entry);
        }
        // A part belongs to a counted line, unless that line has no end yet.
        let ends_line = entry.is_none_or(|(stream, partial)| !partial || !self.seen[stream]);
        if ends_line && self.found == self.requested {
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

    fn part(
        &mut self,
        mut looking: [bool; 2],
        place: LogOffset,
        entry: Option<(usize, bool)>,
    ) -> Step {
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
/// the last one first, until it returns that it is done.
fn lines_from_end<F: ReadAt>(
    file: &F,
    size: u64,
    mut each: impl FnMut(u64, &[u8], bool) -> Step,
) -> io::Result<Step> {
    let mut buffer = vec![0; BLOCK];
    // The most recent line found ends here, without its newline; initially the end of the file.
    let mut line_end = size;
    let mut complete = false;
    let mut right = size;
    while right > 0 {
        let left = right.saturating_sub(BLOCK as u64);
        let length = usize::try_from(right - left).expect("not more than a block");
        let block = &mut buffer[..length];
        if file.fill_at(left, block)? < length {
            // The file was truncated meanwhile: the rest is read from its start.
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
    // One byte more than the maximum header, so that a longer one is detected.
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
mod tests;
