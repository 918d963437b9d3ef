//! The content of a new file: zeros become holes.

use std::io::{self, Read};

use rustix::{
    fs::{self, SeekFrom, seek},
    io::Errno,
};
use std::os::fd::{AsFd, OwnedFd};

const BUFFER: usize = 128 << 10;
/// Holes are whole file system blocks, which are rarely larger than this.
const BLOCK: usize = 4096;
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Copies all content into an empty file.
pub(crate) fn content(file: &OwnedFd, mut from: impl Read) -> Result<u64, WriteError> {
    let mut buffer = vec![0; BUFFER];
    let mut size = 0;
    loop {
        let filled = fill(&mut from, &mut buffer).map_err(WriteError::Read)?;
        if filled == 0 {
            break;
        }
        let mut rest = &buffer[..filled];
        while !rest.is_empty() {
            let (data, after) = rest.split_at(blocks_while(rest, |block| !is_zero(block)));
            let (hole, after) = after.split_at(blocks_while(after, is_zero));
            write_all(file, data).map_err(WriteError::Write)?;
            let step = i64::try_from(hole.len()).unwrap_or_default();
            if step > 0 {
                seek(file, SeekFrom::Current(step)).map_err(WriteError::Write)?;
            }
            rest = after;
        }
        size += u64::try_from(filled).unwrap_or_default();
    }
    fs::ftruncate(file, size).map_err(WriteError::Write)?;
    Ok(size)
}

/// Length of the first blocks, in bytes, up to one that the condition does not hold for.
fn blocks_while(bytes: &[u8], condition: impl Fn(&[u8]) -> bool) -> usize {
    let blocks = bytes.chunks(BLOCK).take_while(|block| condition(block));
    blocks.map(<[u8]>::len).sum()
}

/// Whether a block has only zeros. One comparison of memory is fast in a build for tests, too.
fn is_zero(block: &[u8]) -> bool {
    *block == ZEROS[..block.len()]
}

/// Which side failed.
pub(crate) enum WriteError {
    Read(io::Error),
    Write(Errno),
}

/// Reads until the buffer is full or the input ends: streams arrive in chunks of any size.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn write_all(file: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(&file, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
