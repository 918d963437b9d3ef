//! Sparse files: only their data is read and sent.

use std::os::fd::AsFd;

use rustix::{
    fs::{SeekFrom, seek},
    io::Errno,
};
use tar::{EntryType, GnuExtSparseHeader, GnuSparseHeader, Header};

/// The block size of the format.
const BLOCK: u64 = 512;
/// The map of a file is kept in memory, and its owner can create any number of holes: those beyond
/// this are sent as zeros.
const MAX_EXTENTS: usize = 4096;

/// A part of a file that has data: offset and length.
pub(crate) type Extent = (u64, u64);

/// The data parts of a file of this size; `None` if the file has no holes.
pub(crate) fn extents(file: impl AsFd, size: u64) -> Option<Vec<Extent>> {
    let mut found: Vec<Extent> = Vec::new();
    let mut end = 0;
    while end < size {
        let start = match seek(&file, SeekFrom::Data(end)) {
            Ok(start) => start / BLOCK * BLOCK,
            // The rest is a hole.
            Err(Errno::NXIO) => break,
            // The file system does not support SEEK_HOLE.
            Err(_) => return None,
        };
        let hole = seek(&file, SeekFrom::Hole(start.max(end))).ok()?;
        // The file may have changed in between, and each iteration must advance.
        end = hole.next_multiple_of(BLOCK).max(end + BLOCK).min(size);
        if start >= size {
            break;
        }
        let full = found.len() >= MAX_EXTENTS;
        match found.last_mut() {
            Some((from, length)) if full || *from + *length >= start => *length = end - *from,
            _ => found.push((start, end - start)),
        }
    }
    let dense = matches!(found.as_slice(), [(0, length)] if *length == size);
    (!dense && size > 0).then_some(found)
}

/// Turns the header into that of a sparse file (GNU's old format). Returns the blocks between
/// header and data.
pub(crate) fn describe(header: &mut Header, extents: &[Extent], size: u64) -> Vec<u8> {
    let data = extents.iter().map(|(_, length)| length).sum();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(data);
    let mut extents = extents.to_vec();
    // Marks the end of the file if it is in a hole.
    extents.push((size, 0));
    let Some(gnu) = header.as_gnu_mut() else {
        return Vec::new();
    };
    gnu.set_real_size(size);
    let (first, rest) = extents.split_at(extents.len().min(gnu.sparse.len()));
    write(&mut gnu.sparse, first);
    gnu.set_is_extended(!rest.is_empty());
    let mut more = Vec::new();
    let mut chunks = rest
        .chunks(GnuExtSparseHeader::new().sparse().len())
        .peekable();
    while let Some(chunk) = chunks.next() {
        let mut extended = GnuExtSparseHeader::new();
        write(extended.sparse_mut(), chunk);
        extended.set_is_extended(chunks.peek().is_some());
        more.extend_from_slice(extended.as_bytes());
    }
    more
}

fn write(headers: &mut [GnuSparseHeader], extents: &[Extent]) {
    for (header, (start, length)) in headers.iter_mut().zip(extents) {
        header.set_offset(*start);
        header.set_length(*length);
    }
}
