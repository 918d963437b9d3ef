//! Where a command's output goes: data to stdout, everything else to stderr.

use std::io::{self, Write};

use super::failure::Failure;

/// stdout and stderr of a command.
pub(super) struct Terminal<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// True where stdout is a terminal that shows colours, and the user wants them.
    pub(super) color: bool,
}

impl<'a> Terminal<'a> {
    pub(super) fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, color: bool) -> Self {
        Self { out, err, color }
    }

    /// Writes data and sends it off.
    pub(super) fn print(&mut self, data: impl AsRef<[u8]>) -> Result<(), Failure> {
        let written = self
            .out
            .write_all(data.as_ref())
            .and_then(|()| self.out.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Error(anyhow::Error::from(error).context("can't write to stdout")),
        })
    }

    /// Writes an error to stderr.
    pub(super) fn error(&mut self, message: &str) {
        self.note(&format!("error: {message}"));
    }

    /// Writes a line to stderr. There is nobody to tell if that fails.
    pub(super) fn note(&mut self, line: &str) {
        let line = format!("{line}\n");
        let _ = self
            .err
            .write_all(line.as_bytes())
            .and_then(|()| self.err.flush());
    }
}

/// Text from elsewhere with its control characters made visible, so that it can't move the cursor
/// or change the terminal's state. Line feeds and tabs stay.
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
