//! Reads tar streams: POSIX, GNU and older formats. No side effects but reading; no archive can
//! make this use more memory than [`MAX_SPECIAL`] allows.

mod decimal;
mod header;
mod pax;
mod sparse;

use std::io::{self, Read};

pub use self::sparse::Segment;
use self::{
    header::{BLOCK, Format, Header},
    pax::PaxHeader,
};

/// Maximum size of an extended header or a long name. Real ones are far smaller.
pub const MAX_SPECIAL: u64 = 1 << 20;

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file with content.
    File,
    /// A directory.
    Directory,
    /// A hard link to an earlier file of the archive.
    HardLink,
    /// A symbolic link.
    Symlink,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
}

/// One entry, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its type.
    pub kind: Kind,
    /// Its name, as stored in the archive.
    pub path: Vec<u8>,
    /// The target of a link.
    pub link: Vec<u8>,
    /// Permissions, with the setuid, setgid and sticky bits.
    pub mode: u32,
    /// Owner.
    pub uid: u64,
    /// Group.
    pub gid: u64,
    /// Size of the unpacked file. A sparse file has fewer bytes in the archive.
    pub size: u64,
    /// Time of modification: seconds since 1970 and nanoseconds.
    pub mtime: (i64, u32),
    /// Numbers of a device.
    pub device: (u32, u32),
    /// Extended attributes.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The parts of a sparse file that have content; `None` means all of it.
    pub segments: Option<Vec<Segment>>,
}

/// The error of an invalid archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It can't be read to its end.
    #[error("the archive cannot be read")]
    Read(#[source] io::Error),
    /// It ends too early.
    #[error("unexpected end of the archive")]
    Truncated,
    /// It is corrupt, or not an archive.
    #[error("malformed archive: {0}")]
    Malformed(&'static str),
    /// It has an entry type that layers do not use.
    #[error("unsupported entry type {0:?} in the archive")]
    Type(char),
    /// It would need too much memory.
    #[error("the archive has an extended header of {0} bytes, more than {MAX_SPECIAL}")]
    Special(u64),
}

/// An archive that is read sequentially.
pub struct Archive<R> {
    source: R,
    /// Unread bytes of the entry's content.
    left: u64,
    /// Bytes after the content, up to the next block.
    padding: u64,
    /// The end was reached.
    ended: bool,
}

impl<R: Read> Archive<R> {
    /// Reads the archive from `source`.
    pub fn new(source: R) -> Self {
        Self {
            source,
            left: 0,
            padding: 0,
            ended: false,
        }
    }

    /// The source. It is read exactly up to the entry's content.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// The source, with the bytes after the archive's end.
    pub fn into_inner(self) -> R {
        self.source
    }

    /// The next entry; `None` at the end. Skips the unread content of the previous one.
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>, ArchiveError> {
        let (mut pax, mut long_path, mut long_link) = (PaxHeader::default(), None, None);
        let mut special = false;
        loop {
            self.skip_content()?;
            let Some(header) = self.header()? else {
                return if special {
                    Err(ArchiveError::Truncated)
                } else {
                    Ok(None)
                };
            };
            special = true;
            match header.kind {
                b'x' | b'X' => pax = PaxHeader::parse(&self.special(&header)?)?,
                // A global header, such as the commit that git archive writes.
                b'g' => drop(self.special(&header)?),
                b'L' => long_path = Some(until_nul(self.special(&header)?)),
                b'K' => long_link = Some(until_nul(self.special(&header)?)),
                // The volume's label.
                b'V' => self.content(&header)?,
                _ => return self.entry(&header, pax, long_path, long_link).map(Some),
            }
        }
    }

    /// Reads content of the current entry. 0 at its end.
    ///
    /// # Errors
    /// The source fails, or ends too early.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ArchiveError> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        if most == 0 {
            return Ok(0);
        }
        let read = self.source_read(&mut buffer[..most])?;
        if read == 0 {
            return Err(ArchiveError::Truncated);
        }
        self.left -= read as u64;
        Ok(read)
    }

    fn entry(
        &mut self,
        header: &Header,
        pax: PaxHeader,
        long_path: Option<Vec<u8>>,
        long_link: Option<Vec<u8>>,
    ) -> Result<Entry, ArchiveError> {
        let path = pax.path.or(long_path).unwrap_or_else(|| header.path());
        let kind = match header.kind {
            // Before POSIX, a directory was a file whose name ends with a slash.
            b'0' | 0 if path.ends_with(b"/") => Kind::Directory,
            b'0' | 0 | b'7' | b'S' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::Symlink,
            b'3' => Kind::CharDevice,
            b'4' => Kind::BlockDevice,
            b'5' => Kind::Directory,
            b'6' => Kind::Fifo,
            other => return Err(ArchiveError::Type(char::from(other))),
        };
        // Some writers set a size for entries without content; no bytes follow.
        let stored = match kind {
            Kind::File => match pax.size {
                Some(size) => size,
                None => header.size()?,
            },
            _ => 0,
        };
        self.expect(stored)?;
        let (mut size, mut segments, mut name) = (stored, None, None);
        if kind == Kind::File {
            if header.kind == b'S' {
                if header.format != Format::Gnu {
                    return Err(ArchiveError::Malformed(
                        "a sparse file outside of GNU's form",
                    ));
                }
                let (real, map) = self.gnu_sparse(header)?;
                (size, segments) = (real, Some(sparse::check(map, real, self.left)?));
            } else if let Some(sparse) = pax.sparse {
                let map = match sparse.map {
                    Some(map) => map,
                    None => self.sparse_map()?,
                };
                name = sparse.name;
                size = sparse.size;
                segments = Some(sparse::check(map, size, self.left)?);
            }
        }
        Ok(Entry {
            kind,
            path: name.unwrap_or(path),
            link: pax.link.or(long_link).unwrap_or_else(|| header.link()),
            mode: header.mode()? & 0o7777,
            uid: pax.uid.map_or_else(|| header.uid(), Ok)?,
            gid: pax.gid.map_or_else(|| header.gid(), Ok)?,
            size,
            mtime: pax
                .mtime
                .map_or_else(|| header.mtime().map(|seconds| (seconds, 0)), Ok)?,
            device: match kind {
                Kind::CharDevice | Kind::BlockDevice => header.device()?,
                _ => (0, 0),
            },
            xattrs: pax.xattrs,
            segments,
        })
    }

    /// The next header; `None` at the end of the archive.
    fn header(&mut self) -> Result<Option<Header>, ArchiveError> {
        if self.ended {
            return Ok(None);
        }
        let Some(block) = self.block()? else {
            // Some writers omit the end marks.
            self.ended = true;
            return Ok(None);
        };
        if block.iter().all(|byte| *byte == 0) {
            self.ended = true;
            return match self.block()? {
                Some(second) if second.iter().any(|byte| *byte != 0) => {
                    Err(ArchiveError::Malformed("data after the end of the archive"))
                }
                _ => Ok(None),
            };
        }
        Header::parse(block).map(Some)
    }

    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, ArchiveError> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.source_read(&mut block[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(ArchiveError::Truncated),
                read => filled += read,
            }
        }
        Ok(Some(block))
    }

    fn source_read(&mut self, buffer: &mut [u8]) -> Result<usize, ArchiveError> {
        loop {
            match self.source.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ArchiveError::Read(error)),
                Ok(read) => return Ok(read),
            }
        }
    }

    /// The content of `header`'s entry follows.
    fn content(&mut self, header: &Header) -> Result<(), ArchiveError> {
        let size = header.size()?;
        self.expect(size)
    }

    fn expect(&mut self, size: u64) -> Result<(), ArchiveError> {
        let too_large = ArchiveError::Malformed("an entry is larger than any file can be");
        if i64::try_from(size).is_err() {
            return Err(too_large);
        }
        self.left = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
        Ok(())
    }

    /// The whole content of an extended header.
    fn special(&mut self, header: &Header) -> Result<Vec<u8>, ArchiveError> {
        self.content(header)?;
        if self.left > MAX_SPECIAL {
            return Err(ArchiveError::Special(self.left));
        }
        let length = usize::try_from(self.left).map_err(|_| ArchiveError::Special(self.left))?;
        let mut bytes = vec![0; length];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ArchiveError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..])? {
                0 => return Err(ArchiveError::Truncated),
                read => filled += read,
            }
        }
        Ok(())
    }

    fn skip_content(&mut self) -> Result<(), ArchiveError> {
        self.left += self.padding;
        self.padding = 0;
        let mut buffer = [0; 4096];
        while self.left > 0 {
            self.read(&mut buffer)?;
        }
        Ok(())
    }
}

fn until_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(length.unwrap_or(bytes.len()));
    bytes
}

#[cfg(test)]
mod tests;
