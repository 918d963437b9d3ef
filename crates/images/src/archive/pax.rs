//! Extended headers: repeated `LENGTH KEY=VALUE\n`. See pax(1) of POSIX.

use super::{ArchiveError, decimal::decimal, sparse::Segment};

/// The fields of the next entry that an extended header sets.
#[derive(Debug, Default)]
pub(super) struct PaxHeader {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) mtime: Option<(i64, u32)>,
    pub(super) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) sparse: Option<PaxSparse>,
}

/// A sparse file in one of GNU's formats.
#[derive(Debug)]
pub(super) struct PaxSparse {
    pub(super) name: Option<Vec<u8>>,
    pub(super) size: u64,
    /// Format 0.1; in format 1.0 the content begins with the map.
    pub(super) map: Option<Vec<Segment>>,
}

const XATTR: &[u8] = b"SCHILY.xattr.";

impl PaxHeader {
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Self, ArchiveError> {
        let damaged = || ArchiveError::Malformed("an extended header has incomplete records");
        let mut pax = Self::default();
        let mut sparse = Sparse::default();
        while !bytes.is_empty() {
            // Some writers fill the rest of the block.
            if bytes.iter().all(|byte| *byte == 0) {
                break;
            }
            let blank = bytes.iter().position(|byte| *byte == b' ');
            let blank = blank.ok_or_else(damaged)?;
            let length = decimal(&bytes[..blank]).ok_or_else(damaged)?;
            let length = usize::try_from(length).map_err(|_| damaged())?;
            if length <= blank + 1 || length > bytes.len() {
                return Err(damaged());
            }
            let (record, rest) = bytes.split_at(length);
            let record = record[blank + 1..]
                .strip_suffix(b"\n")
                .ok_or_else(damaged)?;
            let equals = record.iter().position(|byte| *byte == b'=');
            let equals = equals.ok_or_else(damaged)?;
            pax.take(&record[..equals], &record[equals + 1..], &mut sparse)?;
            bytes = rest;
        }
        pax.sparse = sparse.finish()?;
        Ok(pax)
    }

    fn take(&mut self, key: &[u8], value: &[u8], sparse: &mut Sparse) -> Result<(), ArchiveError> {
        if let Some(name) = key.strip_prefix(XATTR) {
            self.xattrs.push((name.to_vec(), value.to_vec()));
            return Ok(());
        }
        let text = || {
            if value.contains(&0) {
                return Err(ArchiveError::Malformed("a name has a zero byte"));
            }
            // An empty value deletes the record.
            Ok((!value.is_empty()).then(|| value.to_vec()))
        };
        let number = || {
            let wrong = ArchiveError::Malformed("invalid number in an extended header");
            if value.is_empty() {
                return Ok(None);
            }
            decimal(value).map(Some).ok_or(wrong)
        };
        match key {
            b"path" => self.path = text()?,
            b"linkpath" => self.link = text()?,
            b"size" => self.size = number()?,
            b"uid" => self.uid = number()?,
            b"gid" => self.gid = number()?,
            b"mtime" if value.is_empty() => self.mtime = None,
            b"mtime" => {
                let wrong = ArchiveError::Malformed("invalid time in an extended header");
                self.mtime = Some(time(value).ok_or(wrong)?);
            }
            b"GNU.sparse.name" => sparse.name = text()?,
            b"GNU.sparse.major" => sparse.major = number()?,
            b"GNU.sparse.minor" => sparse.minor = number()?,
            b"GNU.sparse.realsize" | b"GNU.sparse.size" => sparse.size = number()?,
            b"GNU.sparse.map" => sparse.map = Some(value.to_vec()),
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => sparse.oldest = true,
            // Other times, user and group names, comments: not used in layers.
            _ => {}
        }
        Ok(())
    }
}

#[derive(Default)]
struct Sparse {
    name: Option<Vec<u8>>,
    major: Option<u64>,
    minor: Option<u64>,
    size: Option<u64>,
    map: Option<Vec<u8>>,
    oldest: bool,
}

impl Sparse {
    fn finish(self) -> Result<Option<PaxSparse>, ArchiveError> {
        if self.oldest {
            let why = "sparse file in GNU format 0.0, which is not supported";
            return Err(ArchiveError::Malformed(why));
        }
        let map = match (self.major, self.minor, self.map) {
            (None, None, None) => return Ok(None),
            (Some(1), Some(0), _) => None,
            (None | Some(0), None | Some(1), Some(map)) => Some(pairs(&map)?),
            _ => {
                return Err(ArchiveError::Malformed("unknown sparse file format"));
            }
        };
        let wrong = ArchiveError::Malformed("a sparse file has no size");
        Ok(Some(PaxSparse {
            name: self.name,
            size: self.size.ok_or(wrong)?,
            map,
        }))
    }
}

/// `offset,length,offset,length,…`
fn pairs(map: &[u8]) -> Result<Vec<Segment>, ArchiveError> {
    let wrong = || ArchiveError::Malformed("invalid map of a sparse file");
    if map.is_empty() {
        return Ok(Vec::new());
    }
    let numbers: Option<Vec<u64>> = map.split(|byte| *byte == b',').map(decimal).collect();
    let numbers = numbers.filter(|numbers| numbers.len() % 2 == 0);
    let numbers = numbers.ok_or_else(wrong)?;
    Ok(numbers
        .chunks_exact(2)
        .map(|pair| Segment {
            offset: pair[0],
            length: pair[1],
        })
        .collect())
}

/// Seconds with a fraction, possibly negative. The fraction is always added.
fn time(text: &[u8]) -> Option<(i64, u32)> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let dot = text.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match dot {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = i64::try_from(decimal(whole)?).ok()?;
    let digits = fraction.iter().copied().chain(std::iter::repeat(b'0'));
    let nanos = digits
        .take(9)
        .fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Some(match (negative, nanos) {
        (false, nanos) => (seconds, nanos),
        (true, 0) => (-seconds, 0),
        (true, nanos) => (-seconds - 1, 1_000_000_000 - nanos),
    })
}
