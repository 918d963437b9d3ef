//! The file of a log. A write never blocks the container for good and never leaves half an entry:
//! what the disk doesn't take is dropped and counted.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::protocol::LogState;

/// An open log, or none where the output is thrown away.
#[derive(Debug, Default)]
pub(crate) struct LogFile {
    open: Option<Open>,
    state: LogState,
    /// Whether the latest write failed.
    failing: bool,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    /// Whether the file ends in the middle of an entry.
    torn: bool,
}

impl LogFile {
    /// Opens the log; `None` throws everything away.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = match path {
            Some(path) => Some(Open {
                path: path.to_owned(),
                file: open(path)?,
                torn: false,
            }),
            None => None,
        };
        Ok(Self {
            open,
            ..Self::default()
        })
    }

    /// Opens the file at the same path anew. The old one is written to if that fails.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        if let Some(log) = &mut self.open {
            log.file = open(&log.path)?;
            log.torn = false;
        }
        Ok(())
    }

    /// How it does.
    pub(crate) fn state(&self) -> &LogState {
        &self.state
    }

    /// Writes whole entries. Returns why, when entries are lost for the first time after others
    /// were written.
    pub(crate) fn append(&mut self, entries: &[u8]) -> Option<String> {
        let log = self.open.as_mut()?;
        if entries.is_empty() {
            return None;
        }
        let (kept, error) = log.append(entries);
        let Some(error) = error else {
            self.failing = false;
            return None;
        };
        let lost = &entries[kept..];
        let lines = lost.iter().filter(|byte| **byte == b'\n').count();
        self.state.lost_lines += lines as u64;
        self.state.lost_bytes += lost.len() as u64;
        let text = format!("cannot write to {}: {error}", log.path.display());
        self.state.last_error = Some(text.clone());
        let first = !std::mem::replace(&mut self.failing, true);
        first.then_some(text)
    }
}

impl Open {
    /// How many bytes of whole entries are in the file, and why not all.
    fn append(&mut self, entries: &[u8]) -> (usize, Option<io::Error>) {
        if self.torn {
            match self.file.write_all(b"\n") {
                Ok(()) => self.torn = false,
                Err(error) => return (0, Some(error)),
            }
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
                return (written, None);
            }
        };
        let whole = entries[..written]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        if whole < written {
            self.torn = self.cut((written - whole) as u64).is_err();
        }
        (whole, Some(error))
    }

    /// Takes the last bytes off the file.
    fn cut(&self, bytes: u64) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        self.file.set_len(length.saturating_sub(bytes))
    }
}

/// As containerd opens it: readable for the group, so that collectors need not be root.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(libc::O_CLOEXEC)
        .open(path)
}
