//! A container's log: its output as entries of the CRI's format. The file may be rotated by others,
//! the disk may be full, and other containers may write to the directory.

mod file;
mod lines;
mod timestamp;

use std::{io, path::Path};

use rubelet_logs::{entry::StdStream, place};

pub(crate) use file::LogFile;
pub(crate) use lines::LineSplitter;
pub use rubelet_logs::place::make_dir;
pub(crate) use timestamp::TimestampFormatter;

/// Removes an empty log; returns whether it did. Does not follow symbolic links.
///
/// # Errors
/// Its directory can't be opened, or it can't be removed.
pub fn remove_if_empty(log: &Path) -> io::Result<bool> {
    place::LogPlace::open(log)?.remove_if_empty()
}

/// Appends one entry: `TIMESTAMP STREAM TAG CONTENT`.
fn write_entry(
    batch: &mut Vec<u8>,
    stamp: &str,
    stream: StdStream,
    partial: bool,
    text: [&[u8]; 2],
) {
    let tag: &[u8] = if partial { b" P " } else { b" F " };
    for part in [
        stamp.as_bytes(),
        b" ",
        stream.as_str().as_bytes(),
        tag,
        text[0],
        text[1],
        b"\n",
    ] {
        batch.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests;
