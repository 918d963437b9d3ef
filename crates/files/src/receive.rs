//! A tar stream, written below a directory.

use std::{
    io::{self, Read},
    os::fd::OwnedFd,
    thread,
};

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::{
    fs::{self, AtFlags, Mode, OFlags, ResolveFlags, Timespec, Timestamps},
    io::Errno,
};
use tar::{Archive, Entry, EntryType};

use crate::{
    Destination, FilesError,
    error::shown,
    lookup::{DIRECTORY, open_beneath},
    send::{FAILURE, failure_text},
    write::{self, WriteError},
};

/// Maximum number of skipped entries that are named.
const MAX_NAMED: usize = 100;
/// Maximum length of a failure message.
const MAX_FAILURE: u64 = 4096;
/// No link is followed below the destination, whoever created it.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Which bits of a file's mode are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attributes {
    /// Permissions only. For files of a container on the host: a set-user-ID bit would make the user of
    /// this process run as somebody else.
    Restricted,
    /// All of them.
    Full,
}

/// What was received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of files, holes included.
    pub bytes: u64,
    /// Other entries, which were skipped; the first hundred.
    pub skipped: Vec<String>,
}

impl Destination {
    /// Writes the stream's entries. Existing files are replaced; a directory is only replaced by a
    /// directory, whose entries are added.
    ///
    /// # Errors
    /// The stream is broken, contains rejected entries, or a file can't be written. Files written
    /// before stay.
    pub fn receive(
        self,
        stream: impl Read + Send,
        attributes: Attributes,
    ) -> Result<Received, FilesError> {
        let Some((uid, gid)) = self.owner.filter(|owner| *owner != (0, 0)) else {
            return Receiver::new(self, attributes).run(stream);
        };
        // The file system UID is per thread, and this thread's must not change.
        thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                make_files_as(uid, gid)?;
                Receiver::new(self, attributes).run(stream)
            });
            receiving.join().unwrap_or_else(|_| {
                let error = io::Error::other("the thread panicked");
                Err(FilesError::Stream(error))
            })
        })
    }
}

/// Makes this thread create files as another user, with all its capabilities. On idmapped mounts
/// only mapped users can create files.
fn make_files_as(uid: u32, gid: u32) -> Result<(), FilesError> {
    let failed = |source: io::Error| FilesError::Io {
        step: "create files as the container's root user in",
        path: "/".to_owned(),
        source,
    };
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    setfsgid(gid);
    setfsuid(uid);
    // Neither call reports errors; a second one returns the current value.
    if setfsgid(gid) != gid || setfsuid(uid) != uid {
        return Err(failed(Errno::PERM.into()));
    }
    // The kernel drops the file system capabilities when the file system UID becomes non-zero.
    let capabilities = rustix::thread::capabilities(None).and_then(|mut sets| {
        sets.effective = sets.permitted;
        rustix::thread::set_capabilities(None, sets)
    });
    capabilities.map_err(|error| failed(error.into()))
}

/// A directory whose mode and times are set after all its entries.
struct OpenDirectory {
    path: Vec<u8>,
    mode: Mode,
    times: Timestamps,
}

struct Receiver {
    destination: Destination,
    attributes: Attributes,
    /// The first component of all names; `None` before the first entry.
    top: Option<Vec<u8>>,
    open: Vec<OpenDirectory>,
    /// The last used directory: entries come directory by directory.
    last: Option<(Vec<u8>, OwnedFd)>,
    received: Received,
}

impl Receiver {
    fn new(destination: Destination, attributes: Attributes) -> Self {
        Self {
            destination,
            attributes,
            top: None,
            open: Vec::new(),
            last: None,
            received: Received::default(),
        }
    }

    fn run(mut self, stream: impl Read) -> Result<Received, FilesError> {
        let mut archive = Archive::new(stream);
        for entry in archive.entries().map_err(FilesError::Stream)? {
            self.entry(entry.map_err(FilesError::Stream)?)?;
        }
        self.settle(|_| false)?;
        match self.top {
            Some(_) => Ok(self.received),
            None => Err(FilesError::Stream(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn entry(&mut self, mut entry: Entry<'_, impl Read>) -> Result<(), FilesError> {
        let kind = entry.header().entry_type();
        let name = entry.path_bytes().into_owned();
        if kind == EntryType::XGlobalHeader {
            if name != FAILURE.as_bytes() {
                return Ok(());
            }
            let mut record = Vec::new();
            let read = entry.take(MAX_FAILURE).read_to_end(&mut record);
            read.map_err(FilesError::Stream)?;
            return Err(FilesError::Sender(failure_text(&record)));
        }
        let Some(path) = self.place(&name)? else {
            // The contents of a directory go into an existing one, which stays as it is.
            return Ok(());
        };
        self.settle(|open| is_below(&path, open))?;
        let (parent, last) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&b""[..], path.as_slice()),
        };
        let header = entry.header();
        let mode = Mode::from_raw_mode(header.mode().map_err(FilesError::Stream)?);
        let mode = mode & self.kept();
        let times = times(header.mtime().map_err(FilesError::Stream)?);
        match kind {
            EntryType::Directory => {
                if self.directory(parent, last, &path)? {
                    self.open.push(OpenDirectory { path, mode, times });
                }
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let directory = self.parent(parent)?;
                let file = create(directory, last).map_err(|error| error.of(&path))?;
                let written = write::content(&file.fd, &mut entry);
                self.received.bytes += written.map_err(|error| match error {
                    WriteError::Read(error) => FilesError::Stream(error),
                    WriteError::Write(error) => FilesError::io("write", &path, error),
                })?;
                if file.new {
                    let set = fs::fchmod(&file.fd, mode);
                    let set = set.and_then(|()| fs::futimens(&file.fd, &times));
                    set.map_err(|error| FilesError::io("set the mode of", &path, error))?;
                }
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                let directory = self.parent(parent)?;
                link(directory, last, &target, &times).map_err(|error| error.of(&path))?;
            }
            EntryType::Link => {
                return Err(FilesError::Refused {
                    path: shown(&name),
                    why: "hard links are not taken",
                });
            }
            _ => {
                if self.received.skipped.len() < MAX_NAMED {
                    self.received.skipped.push(shown(&name));
                }
                return Ok(());
            }
        }
        self.received.entries += 1;
        Ok(())
    }

    fn kept(&self) -> Mode {
        Mode::from_raw_mode(match self.attributes {
            Attributes::Restricted => 0o777,
            Attributes::Full => 0o7777,
        })
    }

    /// Where an entry goes, relative to the destination directory; `None` for that directory
    /// itself.
    fn place(&mut self, name: &[u8]) -> Result<Option<Vec<u8>>, FilesError> {
        let refused = |why| FilesError::Refused {
            path: shown(name),
            why,
        };
        if name.starts_with(b"/") {
            return Err(refused("its name is absolute"));
        }
        let mut parts: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
        parts.retain(|part| !matches!(*part, b"" | b"."));
        if parts.iter().any(|part| *part == b"..") {
            return Err(refused("its name has `..` in it"));
        }
        if name.contains(&0) {
            return Err(refused("its name has a zero byte in it"));
        }
        // If the source is the contents of a directory, its name is empty, and no prefix is
        // stripped.
        let first = parts.first().map_or(&b""[..], |first| first).to_vec();
        let top = self.top.get_or_insert(first);
        if !top.is_empty() {
            if parts.first().is_none_or(|first| first != top) {
                return Err(refused("it is not below the first entry"));
            }
            parts.remove(0);
        }
        let base = match &self.destination.name {
            Some(name) => name.as_encoded_bytes(),
            None => top.as_slice(),
        };
        if !base.is_empty() {
            parts.insert(0, base);
        }
        let path = parts.join(&b'/');
        Ok((!path.is_empty()).then_some(path))
    }

    /// Sets mode and times of the directories that are complete.
    fn settle(&mut self, goes_on: impl Fn(&[u8]) -> bool) -> Result<(), FilesError> {
        while let Some(directory) = self.open.pop_if(|open| !goes_on(&open.path)) {
            let path = &directory.path;
            let set = open_beneath(&self.destination.directory, path, DIRECTORY, RESOLVE);
            let set = set.and_then(|fd| {
                fs::fchmod(&fd, directory.mode)?;
                fs::futimens(&fd, &directory.times)
            });
            match set {
                // It was replaced meanwhile.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(FilesError::io("set the mode of", path, error)),
            }
        }
        Ok(())
    }

    fn parent(&mut self, path: &[u8]) -> Result<&OwnedFd, FilesError> {
        if path.is_empty() {
            return Ok(&self.destination.directory);
        }
        let is_last = self.last.as_ref().is_some_and(|(last, _)| last == path);
        if !is_last {
            let opened = open_beneath(&self.destination.directory, path, DIRECTORY, RESOLVE);
            let opened = opened.map_err(|error| FilesError::io("open", path, error))?;
            self.last = Some((path.to_vec(), opened));
        }
        match &self.last {
            Some((_, directory)) => Ok(directory),
            None => Ok(&self.destination.directory),
        }
    }

    /// Creates a directory; false if it exists already.
    fn directory(&mut self, parent: &[u8], last: &[u8], path: &[u8]) -> Result<bool, FilesError> {
        let directory = self.parent(parent)?;
        match fs::mkdirat(directory, last, Mode::RWXU) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => {
                let flags = DIRECTORY | OFlags::NOFOLLOW;
                match fs::openat(directory, last, flags, Mode::empty()) {
                    Ok(_) => Ok(false),
                    Err(Errno::NOTDIR | Errno::LOOP) => Err(FilesError::Conflict {
                        path: shown(path),
                        why: "it is there and no directory",
                    }),
                    Err(error) => Err(FilesError::io("open", path, error)),
                }
            }
            Err(error) => Err(FilesError::io("make the directory", path, error)),
        }
    }
}

/// True for paths in that directory, at any depth.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with(b"/"))
}

fn times(modified: u64) -> Timestamps {
    let time = Timespec {
        tv_sec: i64::try_from(modified).unwrap_or_default(),
        tv_nsec: 0,
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// A file to be written.
struct NewFile {
    fd: OwnedFd,
    /// False if only the content is replaced.
    new: bool,
}

/// A failed step, without its path.
struct StepError(&'static str, Errno);

impl StepError {
    fn of(self, path: &[u8]) -> FilesError {
        match self.1 {
            Errno::ISDIR => FilesError::Conflict {
                path: shown(path),
                why: "it is a directory, which is not replaced by a file",
            },
            error => FilesError::io(self.0, path, error),
        }
    }
}

/// Creates a file in place of any existing one, so that nothing is written through a link or into a
/// device.
fn create(directory: &OwnedFd, name: &[u8]) -> Result<NewFile, StepError> {
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NOFOLLOW
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let open = || fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR);
    let opened = match open() {
        Err(Errno::EXIST) => match fs::unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => open(),
            // A mount point, such as a pod's `/etc/hosts`, can't be replaced, only written.
            Err(Errno::BUSY) => {
                let fd = overwrite(directory, name).map_err(|error| StepError("write", error))?;
                return Ok(NewFile { fd, new: false });
            }
            Err(error) => Err(error),
        },
        opened => opened,
    };
    let fd = opened.map_err(|error| StepError("create", error))?;
    Ok(NewFile { fd, new: true })
}

fn overwrite(directory: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd as _;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = fs::openat(directory, name, flags, Mode::empty())?;
    let found = fs::fstat(&held)?;
    if !fs::FileType::from_raw_mode(found.st_mode).is_file() {
        return Err(Errno::BUSY);
    }
    let path = format!("/proc/self/fd/{}", held.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
    fs::openat(fs::CWD, path, flags, Mode::empty())
}

fn link(
    directory: &OwnedFd,
    name: &[u8],
    target: &[u8],
    times: &Timestamps,
) -> Result<(), StepError> {
    let make = || fs::symlinkat(target, directory, name);
    let made = match make() {
        Err(Errno::EXIST) => fs::unlinkat(directory, name, AtFlags::empty()).and_then(|()| make()),
        made => made,
    };
    let set = made.and_then(|()| fs::utimensat(directory, name, times, AtFlags::SYMLINK_NOFOLLOW));
    set.map_err(|error| StepError("make the link", error))
}

#[cfg(test)]
mod tests;
