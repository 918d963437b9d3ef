//! A log file of a container. A write never blocks the container forever and never leaves a partial
//! line: entries that can't be written are dropped and counted, and the log reports the loss as
//! soon as it can be written again.
//!
//! The size of a log is bounded even if the kubelet does not rotate it: a file that reaches half of
//! the bound is rotated here, under the kubelet's naming scheme, and the previously rotated one is
//! removed.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::File,
    io::{self, Write as _},
    path::Path,
};

use rubelet_logs::{entry::StdStream, place::LogPlace};

use super::write_entry;
use crate::protocol::LogState;

/// The log of a container; without an open file, the output is discarded.
#[derive(Debug, Default)]
pub(crate) struct LogFile {
    open: Option<OpenLog>,
    state: LogState,
    /// The latest write failed.
    failing: bool,
    /// Lost lines and bytes that the log does not report yet.
    unreported: (u64, u64),
}

#[derive(Debug)]
struct OpenLog {
    place: LogPlace,
    file: File,
    /// Size of the file in bytes; too large if another process truncated the file.
    length: u64,
    /// Maximum size of the file in bytes; `None` is unlimited.
    longest: Option<u64>,
    /// Name of the last rotated file.
    aside: Option<OsString>,
    /// An older rotated file was removed.
    has_dropped: bool,
    /// The file ends in the middle of an entry.
    torn: bool,
}

impl LogFile {
    /// Opens the log; `None` discards everything. `bound` is the most bytes of the log on disk; 0
    /// is unlimited.
    pub(crate) fn open(path: Option<&Path>, bound: u64) -> io::Result<Self> {
        let open = match path {
            Some(path) => Some(OpenLog::new(path, bound)?),
            None => None,
        };
        Ok(Self {
            open,
            ..Self::default()
        })
    }

    /// Reopens the file at the same path. If that fails, the old file stays in use.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        if let Some(log) = &mut self.open {
            let place = LogPlace::open(log.place.path())?;
            log.use_file(place.file()?)?;
            log.place = place;
        }
        Ok(())
    }

    /// The log's state.
    pub(crate) fn state(&self) -> &LogState {
        &self.state
    }

    /// Writes whole entries; `stamp` is the present time in the format of entries. Returns a
    /// warning when entries start to be lost, and when the bound first removes entries.
    pub(crate) fn append(&mut self, entries: &[u8], stamp: &str) -> Option<String> {
        let log = self.open.as_mut()?;
        let note = note(self.unreported, &self.state, stamp);
        if entries.is_empty() && note.is_empty() {
            return None;
        }
        let batch = if note.is_empty() {
            Cow::Borrowed(entries)
        } else {
            Cow::Owned([&note, entries].concat())
        };
        let had_dropped = log.has_dropped;
        let (kept, error) = match log.make_room(batch.len() as u64, stamp) {
            Ok(()) => log.append(&batch),
            Err(error) => (0, Some(error)),
        };
        // The note is in the file: what it counts is reported.
        if kept >= note.len() {
            self.unreported = (0, 0);
        }
        let Some(error) = error else {
            self.failing = false;
            let path = log.place.path().display();
            return (log.has_dropped && !had_dropped).then(|| {
                format!("{path} exceeds its size limit between two rotations: the oldest entries are dropped")
            });
        };
        let lost = &entries[kept.saturating_sub(note.len())..];
        let lines = lost.iter().filter(|byte| **byte == b'\n').count() as u64;
        let bytes = lost.len() as u64;
        self.state.lost_lines += lines;
        self.state.lost_bytes += bytes;
        self.unreported = (self.unreported.0 + lines, self.unreported.1 + bytes);
        let text = format!("cannot write to {}: {error}", log.place.path().display());
        self.state.last_error = Some(text.clone());
        let first = !std::mem::replace(&mut self.failing, true);
        first.then_some(text)
    }
}

/// The log entry that reports lost entries; empty if none were lost.
fn note((lines, bytes): (u64, u64), state: &LogState, stamp: &str) -> Vec<u8> {
    let mut note = Vec::new();
    if bytes > 0 {
        let why = state.last_error.as_deref().unwrap_or_default();
        let text = format!("rubelet: {lines} entries of this log ({bytes} bytes) were lost: {why}");
        write_entry(
            &mut note,
            stamp,
            StdStream::Stderr,
            false,
            [text.as_bytes(), b""],
        );
    }
    note
}

impl OpenLog {
    fn new(path: &Path, bound: u64) -> io::Result<Self> {
        let place = LogPlace::open(path)?;
        let file = place.file()?;
        Ok(Self {
            length: file.metadata()?.len(),
            place,
            file,
            longest: (bound > 0).then_some(bound / 2),
            aside: None,
            has_dropped: false,
            torn: false,
        })
    }

    fn use_file(&mut self, file: File) -> io::Result<()> {
        self.length = file.metadata()?.len();
        self.file = file;
        self.torn = false;
        Ok(())
    }

    /// Rotates if the present file would become too large.
    fn make_room(&mut self, more: u64, stamp: &str) -> io::Result<()> {
        if self.fits(more) {
            return Ok(());
        }
        if !self.place.holds(&self.file)? {
            // The kubelet moved the file and is about to call ReopenContainerLog: continue in the
            // file that has the name now.
            let file = self.place.file()?;
            return self.use_file(file);
        }
        // The count may be too large: another process may have truncated the file, as logrotate
        // does with `copytruncate`.
        self.length = self.file.metadata()?.len();
        if self.fits(more) {
            Ok(())
        } else {
            self.rotate(stamp)
        }
    }

    /// A batch larger than the bound is written nevertheless: it comes from one read.
    fn fits(&self, more: u64) -> bool {
        let with = self.length.saturating_add(more);
        self.length == 0 || self.longest.is_none_or(|longest| with <= longest)
    }

    fn rotate(&mut self, stamp: &str) -> io::Result<()> {
        let aside = self.place.with_suffix(&suffix(stamp));
        // The name has a resolution of one second.
        let again = self.aside.as_ref() == Some(&aside);
        if again {
            // ext4 writes a file to the disk before it replaces another by it.
            self.place.remove(&aside)?;
        }
        self.place.move_to(&aside)?;
        self.has_dropped |= again;
        match self.place.new_file() {
            Ok(file) => self.use_file(file)?,
            Err(error) => {
                self.place.move_back(&aside);
                return Err(error);
            }
        }
        if let Some(before) = self.aside.replace(aside)
            && !again
        {
            self.has_dropped = true;
            self.place.remove(&before)?;
        }
        Ok(())
    }

    /// Writes whole entries; returns the bytes written, and the error if not all were.
    fn append(&mut self, entries: &[u8]) -> (usize, Option<io::Error>) {
        // Terminates the partial entry, so that the next one begins a line.
        if self.torn {
            match self.file.write_all(b"\n") {
                Ok(()) => self.torn = false,
                Err(error) => return (0, Some(error)),
            }
            self.length += 1;
        }
        let mut written = 0;
        let error = loop {
            match self.file.write(&entries[written..]) {
                Ok(0) => break io::ErrorKind::WriteZero.into(),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
            if written == entries.len() {
                self.length += written as u64;
                return (written, None);
            }
        };
        self.length += written as u64;
        let whole = entries[..written]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        if whole < written {
            self.torn = self.cut((written - whole) as u64).is_err();
        }
        (whole, Some(error))
    }

    /// Truncates the file by this many bytes.
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        self.file.set_len(length.saturating_sub(bytes))?;
        self.length = self.length.saturating_sub(bytes);
        Ok(())
    }
}

/// The suffix `YYYYMMDD-HHMMSS` of rotated files, as the kubelet names them.
fn suffix(stamp: &str) -> String {
    let (date, time) = stamp.split_once('T').unwrap_or_default();
    let digits = |text: &str, count: usize| -> String {
        let digits = text.chars().filter(char::is_ascii_digit);
        digits.take(count).collect()
    };
    format!("{}-{}", digits(date, 8), digits(time, 6))
}

#[cfg(test)]
mod tests;
