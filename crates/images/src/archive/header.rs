//! A header block of 512 bytes, which describes the following entry. See tar(5).

use std::ops::Range;

use super::ArchiveError;

pub(super) const BLOCK: usize = 512;

const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const UID: Range<usize> = 108..116;
const GID: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const MTIME: Range<usize> = 136..148;
const CHECKSUM: Range<usize> = 148..156;
const KIND: usize = 156;
const LINK: Range<usize> = 157..257;
const MAGIC: Range<usize> = 257..265;
const MAJOR: Range<usize> = 329..337;
const MINOR: Range<usize> = 337..345;
const PREFIX: Range<usize> = 345..500;
const STAR_PREFIX: Range<usize> = 345..476;
const STAR_TRAILER: Range<usize> = 508..512;

/// The format of the fields after the first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Before POSIX: there are none.
    V7,
    Posix,
    Star,
    Gnu,
}

pub(super) struct Header {
    block: [u8; BLOCK],
    pub(super) kind: u8,
    pub(super) format: Format,
}

impl Header {
    pub(super) fn parse(block: [u8; BLOCK]) -> Result<Self, ArchiveError> {
        let said = number(&block[CHECKSUM], "header checksum is not a number")?;
        // The checksum field itself counts as spaces. Old writers summed signed bytes.
        let bytes = block
            .iter()
            .enumerate()
            .map(|(at, byte)| if CHECKSUM.contains(&at) { b' ' } else { *byte });
        let unsigned: i64 = bytes.clone().map(i64::from).sum();
        let signed: i64 = bytes.map(|byte| i64::from(byte.cast_signed())).sum();
        if said != unsigned && said != signed {
            return Err(ArchiveError::Malformed("wrong header checksum"));
        }
        let format = match &block[MAGIC] {
            b"ustar  \0" => Format::Gnu,
            magic if magic.starts_with(b"ustar\0") => {
                if &block[STAR_TRAILER] == b"tar\0" {
                    Format::Star
                } else {
                    Format::Posix
                }
            }
            _ => Format::V7,
        };
        Ok(Self {
            kind: block[KIND],
            block,
            format,
        })
    }

    pub(super) fn path(&self) -> Vec<u8> {
        let prefix = match self.format {
            Format::Posix => text(&self.block[PREFIX]),
            Format::Star => text(&self.block[STAR_PREFIX]),
            Format::V7 | Format::Gnu => &[],
        };
        let mut path = prefix.to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(text(&self.block[NAME]));
        path
    }

    pub(super) fn link(&self) -> Vec<u8> {
        text(&self.block[LINK]).to_vec()
    }

    pub(super) fn mode(&self) -> Result<u32, ArchiveError> {
        let what = "mode is not a number";
        let mode = number(&self.block[MODE], what)?;
        u32::try_from(mode).map_err(|_| ArchiveError::Malformed(what))
    }

    pub(super) fn uid(&self) -> Result<u64, ArchiveError> {
        positive(&self.block[UID], "uid is not a number")
    }

    pub(super) fn gid(&self) -> Result<u64, ArchiveError> {
        positive(&self.block[GID], "gid is not a number")
    }

    pub(super) fn size(&self) -> Result<u64, ArchiveError> {
        positive(&self.block[SIZE], "size is not a number")
    }

    pub(super) fn mtime(&self) -> Result<i64, ArchiveError> {
        number(&self.block[MTIME], "mtime is not a number")
    }

    pub(super) fn device(&self) -> Result<(u32, u32), ArchiveError> {
        if self.format == Format::V7 {
            return Ok((0, 0));
        }
        let what = "invalid device number";
        let half = |field| {
            let number = number(&self.block[field], what)?;
            u32::try_from(number).map_err(|_| ArchiveError::Malformed(what))
        };
        Ok((half(MAJOR)?, half(MINOR)?))
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.block[range]
    }
}

fn text(field: &[u8]) -> &[u8] {
    let length = field.iter().position(|byte| *byte == 0);
    &field[..length.unwrap_or(field.len())]
}

pub(super) fn positive(field: &[u8], what: &'static str) -> Result<u64, ArchiveError> {
    u64::try_from(number(field, what)?).map_err(|_| ArchiveError::Malformed(what))
}

/// Octal digits, or, with the first bit set, a binary number in two's complement. Empty is 0.
pub(super) fn number(field: &[u8], what: &'static str) -> Result<i64, ArchiveError> {
    let wrong = || ArchiveError::Malformed(what);
    if let Some(first) = field.first().filter(|first| **first & 0x80 != 0) {
        // The first bit only marks the format; the next one is the sign.
        let start = if first & 0x40 == 0 {
            i128::from(first & 0x3f)
        } else {
            i128::from(*first) - 0x100
        };
        let value = field[1..].iter().try_fold(start, |value, byte| {
            value.checked_mul(256)?.checked_add(i128::from(*byte))
        });
        let value = value.and_then(|value| i64::try_from(value).ok());
        return value.ok_or_else(wrong);
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | 0);
    let digits = field.iter().skip_while(|byte| is_blank(byte));
    let mut value: i64 = 0;
    for byte in digits {
        match byte {
            b'0'..=b'7' => {
                let digit = i64::from(byte - b'0');
                let next = value
                    .checked_mul(8)
                    .and_then(|value| value.checked_add(digit));
                value = next.ok_or_else(wrong)?;
            }
            b' ' | 0 => break,
            _ => return Err(wrong()),
        }
    }
    Ok(value)
}
