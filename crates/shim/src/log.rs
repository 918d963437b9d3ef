//! A container's log: its output as entries of the CRI's format, in a file that may be moved away,
//! on a disk that may be full, in a folder that other containers may write to.

mod file;
mod lines;
mod place;
mod timestamp;

use std::{io, path::Path};

use rubelet_logs::entry::StdStream;

pub(crate) use file::LogFile;
pub(crate) use lines::Lines;
pub(crate) use timestamp::Stamp;

/// Makes the folder of a container's log. Links that a container put into the place of the pod's folder or
/// of the container's are not followed.
///
/// # Errors
/// A folder can't be made, or something else has its name.
pub fn make_dir(log: &Path) -> io::Result<()> {
    place::make_dir(log)
}

/// Removes a log that holds nothing; returns whether it was there. Links are not followed.
///
/// # Errors
/// Its folder can't be opened, or it can't be removed.
pub fn remove_if_empty(log: &Path) -> io::Result<bool> {
    place::Place::open(log)?.remove_if_empty()
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
