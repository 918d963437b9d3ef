//! A directory tree as a tar stream.

use std::{
    ffi::{CString, OsStr},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rubelet_base::ErrorChain;
use rustix::{
    fs::{self, CWD, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};
use tar::{Builder, EntryType, Header};

use crate::{
    FilesError, Source,
    lookup::DIRECTORY,
    sparse::{self, Extent},
};

/// One descriptor is open for each level. No ordinary tree is deeper.
const MAX_DEPTH: usize = 256;
/// The name of a failure entry in the stream.
pub(crate) const FAILURE: &str = "rubelet-failure";
const COMMENT: &str = "comment=";

impl Source {
    /// Writes the source as a tar stream. A failure is also recorded in the stream, so that the
    /// receiver can report it.
    ///
    /// # Errors
    /// A file can't be read, or the stream can't be written.
    pub fn send(self, out: impl Write) -> Result<(), FilesError> {
        let mut archive = Builder::new(out);
        let sent = self.entries(&mut archive);
        if let Err(error) = &sent
            && !matches!(error, FilesError::Stream(_))
        {
            failure(&mut archive, error).map_err(FilesError::Stream)?;
        }
        let finished = archive.into_inner().and_then(|mut out| out.flush());
        sent.and(finished.map_err(FilesError::Stream))
    }

    fn entries(&self, archive: &mut Builder<impl Write>) -> Result<(), FilesError> {
        let (name, path) = match &self.name {
            Some(name) => (name.as_bytes(), name.as_bytes().to_vec()),
            None => (&b"."[..], b".".to_vec()),
        };
        let mut open = Vec::new();
        open.extend(entry(archive, &self.parent, name, &path)?.map(|dir| (dir, path)));
        while let Some((directory, path)) = open.last_mut() {
            let Some(next) = directory.next() else {
                open.pop();
                continue;
            };
            let next = next.map_err(|error| FilesError::io("read", path, error))?;
            let name = next.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let below = match path.as_slice() {
                b"." => name.to_bytes().to_vec(),
                path => [path, b"/", name.to_bytes()].concat(),
            };
            let fd = directory
                .fd()
                .map_err(|error| FilesError::io("read", &below, error))?;
            let inner = match entry(archive, fd, name.to_bytes(), &below) {
                // It was removed meanwhile.
                Err(FilesError::NotFound(_)) => continue,
                inner => inner?,
            };
            if let Some(inner) = inner {
                if open.len() >= MAX_DEPTH {
                    return Err(FilesError::Conflict {
                        path: crate::error::shown(&below),
                        why: "directories are nested too deeply",
                    });
                }
                open.push((inner, below));
            }
        }
        Ok(())
    }
}

/// Writes one entry; returns the directory if it is one.
fn entry(
    archive: &mut Builder<impl Write>,
    parent: impl AsFd,
    name: &[u8],
    path: &[u8],
) -> Result<Option<Dir>, FilesError> {
    let failed = |step| move |error: Errno| FilesError::io(step, path, error);
    // Opening a FIFO or device may block or have side effects. O_PATH has none, and holds the
    // inode.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = fs::openat(&parent, name, flags, Mode::empty()).map_err(failed("open"))?;
    let stat = fs::fstat(&held).map_err(failed("look at"))?;
    let mut header = header(&stat);
    let place = Path::new(OsStr::from_bytes(path));
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let directory = fs::openat(&held, ".", DIRECTORY, Mode::empty());
            let directory = directory.map_err(failed("open"))?;
            header.set_entry_type(EntryType::Directory);
            append(archive, &mut header, place, io::empty())?;
            Ok(Some(Dir::new(directory).map_err(failed("read"))?))
        }
        FileType::RegularFile => {
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            let file = reopen(&held).map_err(failed("open"))?;
            content(archive, header, place, (file, size))?;
            Ok(None)
        }
        FileType::Symlink => {
            let target = readlink(&held).map_err(failed("read the link"))?;
            header.set_entry_type(EntryType::Symlink);
            let target = Path::new(OsStr::from_bytes(target.to_bytes()));
            let appended = archive.append_link(&mut header, place, target);
            appended.map_err(FilesError::Stream)?;
            Ok(None)
        }
        other => {
            // Receivers only report such entries.
            header.set_entry_type(match other {
                FileType::CharacterDevice => EntryType::Char,
                FileType::BlockDevice => EntryType::Block,
                _ => EntryType::Fifo,
            });
            append(archive, &mut header, place, io::empty())?;
            Ok(None)
        }
    }
}

fn readlink(held: &OwnedFd) -> Result<CString, Errno> {
    fs::readlinkat(held, "", Vec::new())
}

/// The file behind an O_PATH descriptor, even if its name refers to another file by now.
pub(crate) fn reopen(held: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", held.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    fs::openat(CWD, path, flags, Mode::empty())
}

fn header(stat: &Stat) -> Header {
    let mut header = Header::new_gnu();
    header.set_mode(stat.st_mode & 0o7777);
    header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or_default());
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

fn append(
    archive: &mut Builder<impl Write>,
    header: &mut Header,
    path: &Path,
    data: impl Read,
) -> Result<(), FilesError> {
    let appended = archive.append_data(header, path, data);
    appended.map_err(FilesError::Stream)
}

/// Writes a file as it is at this moment: a file that grows is truncated, one that shrinks is an
/// error.
fn content(
    archive: &mut Builder<impl Write>,
    mut header: Header,
    path: &Path,
    (file, size): (OwnedFd, u64),
) -> Result<(), FilesError> {
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    let extents = sparse::extents(&file, size);
    let map = match &extents {
        Some(extents) => sparse::describe(&mut header, extents, size),
        None => Vec::new(),
    };
    let mut data = Content {
        file,
        extents: extents.unwrap_or_else(|| vec![(0, size)]).into_iter(),
        now: (0, 0),
        failed: None,
    };
    append(archive, &mut header, path, map.as_slice().chain(&mut data))?;
    match data.failed {
        None => Ok(()),
        Some(error) => Err(FilesError::Io {
            step: "read",
            path: path.to_string_lossy().into_owned(),
            source: error,
        }),
    }
}

/// Exactly the announced parts of a file: zeros for bytes that can't be read.
struct Content {
    file: OwnedFd,
    extents: std::vec::IntoIter<Extent>,
    now: Extent,
    failed: Option<io::Error>,
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.now.1 == 0 {
            match self.extents.next() {
                Some(extent) => self.now = extent,
                None => return Ok(0),
            }
        }
        let (start, left) = self.now;
        let room = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let buffer = &mut buffer[..room];
        let read = match &self.failed {
            None => rustix::io::pread(&self.file, &mut *buffer, start),
            Some(_) => Ok(0),
        };
        let read = match read {
            Err(Errno::INTR) => return self.read(buffer),
            Ok(0) | Err(_) => {
                self.failed.get_or_insert_with(|| match read {
                    Err(error) => error.into(),
                    Ok(_) => io::Error::other("the file became shorter while it was read"),
                });
                buffer.fill(0);
                room
            }
            Ok(read) => read,
        };
        let done = u64::try_from(read).unwrap_or_default();
        self.now = (start + done, left - done);
        Ok(read)
    }
}

/// The last entry of an incomplete stream.
fn failure(archive: &mut Builder<impl Write>, error: &FilesError) -> io::Result<()> {
    let text = ErrorChain(error).to_string();
    let text = text.replace('\n', " ");
    // A pax record: its length includes the digits of the length.
    let rest = COMMENT.len() + text.len() + 2;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    let record = format!("{length} {COMMENT}{text}\n");
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::XGlobalHeader);
    header.set_mode(0);
    header.set_size(u64::try_from(record.len()).unwrap_or_default());
    archive.append_data(&mut header, FAILURE, record.as_bytes())
}

/// The message of a failure entry.
pub(crate) fn failure_text(record: &[u8]) -> String {
    let text = String::from_utf8_lossy(record);
    let text = text.split_once(COMMENT).map_or(&*text, |(_, text)| text);
    text.trim_end().to_owned()
}
