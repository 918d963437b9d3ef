//! The output of a command: data goes to stdout, everything else to stderr.

use std::io::{self, Write};

use anyhow::anyhow;

use super::{failure::CommandError, streams::Streams};

/// stdout and stderr of a command.
pub(super) struct Terminal<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// True if stdout is a terminal with colours, and the user wants them.
    pub(super) color: bool,
    /// stdin, stdout and stderr as descriptors: for more than lines of text.
    streams: Option<Streams>,
}

impl<'a> Terminal<'a> {
    pub(super) fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, color: bool) -> Self {
        Self {
            out,
            err,
            color,
            streams: None,
        }
    }

    /// The same terminal with the descriptors that sessions need.
    pub(super) fn with_streams(self, streams: Streams) -> Self {
        Self {
            streams: Some(streams),
            ..self
        }
    }

    /// stdin, stdout and stderr as descriptors.
    pub(super) fn streams(&self) -> Result<&Streams, CommandError> {
        let missing = || anyhow!("stdin, stdout or stderr cannot be used").into();
        self.streams.as_ref().ok_or_else(missing)
    }

    /// Writes data and flushes it.
    pub(super) fn print(&mut self, data: impl AsRef<[u8]>) -> Result<(), CommandError> {
        let written = self
            .out
            .write_all(data.as_ref())
            .and_then(|()| self.out.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => CommandError::ReaderGone,
            _ => CommandError::Error(anyhow::Error::from(error).context("cannot write to stdout")),
        })
    }

    /// Writes an error to stderr.
    pub(super) fn error(&mut self, message: &str) {
        self.note(&format!("error: {message}"));
    }

    /// Writes text to stderr that may be overwritten, such as a progress bar.
    pub(super) fn hint(&mut self, text: &str) {
        let _ = self
            .err
            .write_all(text.as_bytes())
            .and_then(|()| self.err.flush());
    }

    /// Writes a line to stderr. A failure can't be reported anywhere.
    pub(super) fn note(&mut self, line: &str) {
        let line = format!("{line}\n");
        let _ = self
            .err
            .write_all(line.as_bytes())
            .and_then(|()| self.err.flush());
    }
}

/// Text from elsewhere with its control characters escaped, so that it can't move the cursor or
/// change the terminal's state. Line feeds and tabs stay.
pub(super) fn visible(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => clean.push(c),
            '\0'..' ' => clean.extend(['^', char::from(b'@' + c as u8)]),
            c if c.is_control() => clean.extend(c.escape_unicode()),
            c => clean.push(c),
        }
    }
    clean
}
