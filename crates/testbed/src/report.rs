//! Output for the reader of a failed run: lines on standard error, ends of log files.

use std::io::Write;
use std::path::Path;

/// Writes a line to standard error, for errors that can't be returned.
pub(crate) fn say(text: &str) {
    // If standard error is closed, nothing can be done.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The last `count` lines of a file; empty when it can't be read.
pub(crate) fn tail(path: &Path, count: usize) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
