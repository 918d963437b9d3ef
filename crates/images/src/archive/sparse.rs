//! Sparse files: the positions of the archive's content in a file.

use std::io::Read;

use super::{
    Archive, ArchiveError,
    decimal::decimal,
    header::{BLOCK, Header, positive},
};

/// Part of a sparse file that has content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file.
    pub offset: u64,
    /// Length.
    pub length: u64,
}

/// Maximum parts; real archives have fewer.
const MAX_SEGMENTS: usize = 1 << 16;
const WRONG: &str = "invalid map of a sparse file";

/// Validates the map: it must be ordered, within the file, and cover all `stored` bytes.
pub(super) fn check(
    map: Vec<Segment>,
    size: u64,
    stored: u64,
) -> Result<Vec<Segment>, ArchiveError> {
    let wrong = || ArchiveError::Malformed(WRONG);
    let (mut end, mut sum) = (0, 0u64);
    for segment in &map {
        if segment.offset < end {
            return Err(wrong());
        }
        let next = segment.offset.checked_add(segment.length);
        end = next.filter(|end| *end <= size).ok_or_else(wrong)?;
        sum += segment.length;
    }
    if map.len() > MAX_SEGMENTS || sum != stored || i64::try_from(size).is_err() {
        return Err(wrong());
    }
    Ok(map)
}

impl<R: Read> Archive<R> {
    /// GNU's first format: four parts in the header, more in the following blocks.
    pub(super) fn gnu_sparse(
        &mut self,
        header: &Header,
    ) -> Result<(u64, Vec<Segment>), ArchiveError> {
        let real = positive(header.bytes(483..495), WRONG)?;
        let mut map = Vec::new();
        take(header.bytes(386..482), &mut map)?;
        let mut more = header.bytes(482..483) != [0];
        while more {
            if map.len() > MAX_SEGMENTS {
                return Err(ArchiveError::Malformed(WRONG));
            }
            // These blocks are not part of the entry's size.
            let block = self.block()?.ok_or(ArchiveError::Truncated)?;
            take(&block[..504], &mut map)?;
            more = block[504] != 0;
        }
        Ok((real, map))
    }

    /// GNU's format 1.0: the content begins with the map, in lines, padded to a full block.
    pub(super) fn sparse_map(&mut self) -> Result<Vec<Segment>, ArchiveError> {
        let mut lines = MapLines {
            archive: self,
            block: [0; BLOCK],
            at: BLOCK,
        };
        let count = lines.number()?;
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= MAX_SEGMENTS);
        let count = count.ok_or(ArchiveError::Malformed(WRONG))?;
        (0..count)
            .map(|_| {
                Ok(Segment {
                    offset: lines.number()?,
                    length: lines.number()?,
                })
            })
            .collect()
    }
}

fn take(fields: &[u8], map: &mut Vec<Segment>) -> Result<(), ArchiveError> {
    for pair in fields.chunks_exact(24) {
        // The first unused one ends the list.
        if pair[0] == 0 {
            break;
        }
        map.push(Segment {
            offset: positive(&pair[..12], WRONG)?,
            length: positive(&pair[12..], WRONG)?,
        });
    }
    Ok(())
}

struct MapLines<'a, R> {
    archive: &'a mut Archive<R>,
    block: [u8; BLOCK],
    at: usize,
}

impl<R: Read> MapLines<'_, R> {
    fn number(&mut self) -> Result<u64, ArchiveError> {
        let mut line = Vec::new();
        loop {
            if self.at == BLOCK {
                self.archive.read_exact(&mut self.block)?;
                self.at = 0;
            }
            let byte = self.block[self.at];
            self.at += 1;
            if byte == b'\n' {
                return decimal(&line).ok_or(ArchiveError::Malformed(WRONG));
            }
            line.push(byte);
            if line.len() > 20 {
                return Err(ArchiveError::Malformed(WRONG));
            }
        }
    }
}
