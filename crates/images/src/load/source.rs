//! The files of an archive: a directory, or a tar archive with an index of its entries.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::{
    ImageStore, LoadError, PullError, PullErrorKind,
    archive::{Archive, ArchiveError, Kind},
    tree, unpack,
};

/// Maximum number of files in an archive. Each layer is one.
const MAX_FILES: usize = 100_000;
const MAX_LINKS: usize = 8;
const MAX_NAME: usize = 1024;

pub(super) enum ArchiveFiles {
    Directory(OwnedFd),
    Tar {
        file: Arc<File>,
        /// Offset and length of a file's content.
        entries: HashMap<String, TarEntry>,
        _plain: Option<TempFile>,
    },
}

pub(super) enum TarEntry {
    Content(u64, u64),
    Link(String),
}

/// A temporary file, removed on drop.
pub(super) struct TempFile(PathBuf);

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = tree::remove(&self.0);
    }
}

impl ArchiveFiles {
    pub(super) fn open(path: &Path, store: &ImageStore) -> Result<Self, LoadError> {
        let read = |source| LoadError::Read {
            path: path.to_owned(),
            source,
        };
        let meta = std::fs::metadata(path).map_err(read)?;
        if meta.is_dir() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(path, flags, Mode::empty());
            return directory
                .map(Self::Directory)
                .map_err(|error| read(error.into()));
        }
        if !meta.is_file() {
            return Err(LoadError::Form {
                path: path.to_owned(),
                why: "neither a file nor a directory".into(),
            });
        }
        let file = File::open(path).map_err(read)?;
        let limits = &store.settings().limits.unpack;
        let (mut file, plain) = if unpack::is_compressed(&file).map_err(read)? {
            let scratch = TempFile(store.directories().unused());
            let mut made = File::options()
                .create_new(true)
                .read(true)
                .write(true)
                .open(&scratch.0)
                .map_err(read)?;
            let copied = unpack::plain_copy(&file, &mut made, limits);
            copied.map_err(read)?;
            (made, Some(scratch))
        } else {
            (file, None)
        };
        file.seek(SeekFrom::Start(0)).map_err(read)?;
        let entries = index(&file).map_err(|error| match error {
            ArchiveError::Read(source) => read(source),
            error => LoadError::Form {
                path: path.to_owned(),
                why: error.to_string(),
            },
        })?;
        Ok(Self::Tar {
            file: Arc::new(file),
            entries,
            _plain: plain,
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|found| found.is_some())
    }

    /// A file's content and its length.
    pub(super) fn content(&self, name: &str) -> Result<(Box<dyn Read + Send>, u64), PullError> {
        let found = self.find(name).map_err(|error| {
            let message = format!("cannot read {name} of the archive");
            PullError::because(PullErrorKind::Internal, message, error)
        })?;
        found.ok_or_else(|| {
            let message = format!("{name} not found in the archive");
            PullError::new(PullErrorKind::Refused, message)
        })
    }

    /// Reads a small file.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, PullError> {
        let (content, length) = self.content(name)?;
        if length > most {
            let message = format!("{name} of the archive has {length} bytes, more than {most}");
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        let mut bytes = Vec::new();
        let read = content.take(most).read_to_end(&mut bytes);
        read.map_err(|error| {
            let message = format!("cannot read {name} of the archive");
            PullError::because(PullErrorKind::Internal, message, error)
        })?;
        Ok(bytes)
    }

    fn find(&self, name: &str) -> io::Result<Option<(Box<dyn Read + Send>, u64)>> {
        match self {
            Self::Directory(directory) => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                let opened = rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve);
                let file = match opened {
                    Err(rustix::io::Errno::NOENT) => return Ok(None),
                    file => File::from(file?),
                };
                let meta = file.metadata()?;
                if !meta.is_file() {
                    return Ok(None);
                }
                Ok(Some((Box::new(file), meta.len())))
            }
            Self::Tar { file, entries, .. } => {
                let mut name = name.to_owned();
                for _ in 0..MAX_LINKS {
                    match entries.get(&name) {
                        None => return Ok(None),
                        Some(TarEntry::Link(to)) => name.clone_from(to),
                        Some(TarEntry::Content(start, length)) => {
                            let part = FileRange {
                                file: Arc::clone(file),
                                at: *start,
                                end: start + length,
                            };
                            return Ok(Some((Box::new(part), *length)));
                        }
                    }
                }
                Ok(None)
            }
        }
    }
}

/// A range of a file that has several readers.
struct FileRange {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::os::unix::fs::FileExt as _;
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The index of an archive's files.
fn index(file: &File) -> Result<HashMap<String, TarEntry>, ArchiveError> {
    let mut position = 0;
    let mut archive = Archive::new(CountingReader {
        source: BufReader::with_capacity(128 * 1024, file),
        position: &mut position,
    });
    let mut entries = HashMap::new();
    while let Some(entry) = archive.next_entry()? {
        let Ok(name) = str::from_utf8(&entry.path) else {
            continue;
        };
        // No file of an image has such a long name.
        if name.len() > MAX_NAME || entry.link.len() > MAX_NAME {
            continue;
        }
        let name = join("", name);
        let place = match entry.kind {
            Kind::File if entry.segments.is_none() => {
                TarEntry::Content(archive.source().position(), entry.size)
            }
            Kind::Symlink | Kind::HardLink => {
                let directory = match (entry.kind, name.rsplit_once('/')) {
                    (Kind::Symlink, Some((directory, _))) => directory,
                    _ => "",
                };
                match str::from_utf8(&entry.link) {
                    Ok(link) => TarEntry::Link(join(directory, link)),
                    Err(_) => continue,
                }
            }
            _ => continue,
        };
        if entries.len() == MAX_FILES {
            return Err(ArchiveError::Malformed("too many files"));
        }
        entries.entry(name).or_insert(place);
    }
    Ok(entries)
}

/// `path` relative to `directory`, normalized.
fn join(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

struct CountingReader<'a, R> {
    source: R,
    position: &'a mut u64,
}

impl<R> CountingReader<'_, R> {
    fn position(&self) -> u64 {
        *self.position
    }
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        *self.position += read as u64;
        Ok(read)
    }
}
