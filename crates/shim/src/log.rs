//! A container's log: its output as entries of the CRI's format, in a file that may be moved away,
//! on a disk that may be full.

mod file;
mod lines;
mod timestamp;

use rubelet_logs::entry::StdStream;

pub(crate) use file::LogFile;
pub(crate) use lines::Lines;
pub(crate) use timestamp::Stamp;

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
