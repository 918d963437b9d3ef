//! Opens or creates the directory of each entry, below the root of the layer.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::PathBuf,
};

use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps},
    io::Errno,
};

use super::{attributes, name::Name};

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// Follows links as a process in the container would, and enters no mount.
const RESOLVE: ResolveFlags = ResolveFlags::IN_ROOT
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
/// A rename anywhere on the machine can make openat2(2) fail with EAGAIN: `..` may have escaped the
/// root meanwhile.
const TRIES: usize = 100;
/// Limit for directories without their own entry: no ordinary image has more.
const MAX_IMPLICIT: usize = 100_000;
const MAX_IMPLICIT_BYTES: usize = 8 << 20;
/// Links to links, before they count as a loop.
const MAX_LINKS: usize = 20;

/// The directory of a layer, while it is filled.
pub(super) struct LayerRoot {
    root: OwnedFd,
    /// The last used directory: entries come directory by directory.
    last: Option<(Vec<u8>, OwnedFd)>,
    /// Directories without an entry, created for the entries in them.
    pub(super) implicit: BTreeSet<PathBuf>,
    /// Number of created directories, including those that got an entry later.
    pub(super) made: u64,
    /// Total length of their names.
    implicit_bytes: usize,
    /// The parents of the last directory, and their final times: creating a file in a directory
    /// changes its times, so they are set when the archive leaves it.
    times: Vec<(Vec<u8>, Timestamps)>,
    depth: usize,
}

/// A failed step and its error.
pub(super) struct StepError(pub(super) &'static str, pub(super) Errno);

impl LayerRoot {
    pub(super) fn new(root: OwnedFd, depth: usize) -> Self {
        Self {
            root,
            last: None,
            implicit: BTreeSet::new(),
            made: 0,
            implicit_bytes: 0,
            times: Vec::new(),
            depth,
        }
    }

    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Closes the cached directory: paths may resolve differently now.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Opens the directory at `path`.
    pub(super) fn open(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        // openat2(2) rejects an empty path.
        let path = if path.is_empty() { b"." } else { path };
        for _ in 0..TRIES {
            match fs::openat2(&self.root, path, DIRECTORY, Mode::empty(), RESOLVE) {
                Err(Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    /// The directory at `path`, created if missing, for a new entry in it.
    pub(super) fn directory(&mut self, path: &[u8]) -> Result<&OwnedFd, StepError> {
        let is_last = self.last.as_ref().is_some_and(|(last, _)| last == path);
        if !is_last {
            self.leave(path)?;
            let directory = match self.open(path) {
                Err(Errno::NOENT | Errno::NOTDIR) => self.make(path, 0)?,
                directory => {
                    directory.map_err(|error| StepError("open the directory of", error))?
                }
            };
            self.keep_times(path, &directory)?;
            self.last = Some((path.to_vec(), directory));
        }
        match &self.last {
            Some((_, directory)) => Ok(directory),
            None => Err(StepError("open the directory of", Errno::NOENT)),
        }
    }

    /// Sets the times of the directories that are not parents of `path`.
    fn leave(&mut self, path: &[u8]) -> Result<(), StepError> {
        while let Some((directory, _)) = self.times.last()
            && !is_within(path, directory)
        {
            self.settle()?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), StepError> {
        let Some((path, times)) = self.times.pop() else {
            return Ok(());
        };
        match self
            .open(&path)
            .and_then(|directory| fs::futimens(directory, &times))
        {
            // A later entry replaced it.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(error) => Err(StepError("set the times of the directory of", error)),
        }
    }

    /// Sets the times of all remaining directories.
    pub(super) fn finish(&mut self) -> Result<(), StepError> {
        while !self.times.is_empty() {
            self.settle()?;
        }
        Ok(())
    }

    /// Records the times of the directory at `path`, in which an entry was just created.
    pub(super) fn set_times(&mut self, path: &[u8], times: Timestamps) {
        match self.times.last_mut() {
            Some((last, known)) if last == path => *known = times,
            _ => self.times.push((path.to_vec(), times)),
        }
    }

    /// Records the times of a directory, unless they are known.
    fn keep_times(&mut self, path: &[u8], directory: &OwnedFd) -> Result<(), StepError> {
        if self.times.last().is_some_and(|(last, _)| last == path) {
            return Ok(());
        }
        let stat =
            fs::fstat(directory).map_err(|error| StepError("stat the directory of", error))?;
        let time = |seconds, nanos| Timespec {
            tv_sec: seconds,
            tv_nsec: i64::try_from(nanos).unwrap_or(0),
        };
        let times = Timestamps {
            last_access: time(stat.st_atime, stat.st_atime_nsec),
            last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
        };
        self.times.push((path.to_vec(), times));
        Ok(())
    }

    /// Walks along `path` and creates missing directories.
    fn make(&mut self, path: &[u8], links: usize) -> Result<OwnedFd, StepError> {
        let failed = |error| StepError("create the directory of", error);
        let mut directory = self.open(b"").map_err(failed)?;
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends: Vec<usize> = ends.map(|(at, _)| at).chain([path.len()]).collect();
        for end in ends {
            let here = &path[..end];
            let start = here
                .iter()
                .rposition(|byte| *byte == b'/')
                .map_or(0, |at| at + 1);
            let part = &here[start..];
            directory = match self.open(here) {
                Ok(directory) => directory,
                Err(Errno::NOENT | Errno::NOTDIR) => {
                    self.keep_times(&here[..start.saturating_sub(1)], &directory)?;
                    self.make_part(&directory, here, part, links)?;
                    self.open(here).map_err(failed)?
                }
                Err(error) => return Err(failed(error)),
            };
        }
        Ok(directory)
    }

    fn make_part(
        &mut self,
        directory: &OwnedFd,
        here: &[u8],
        part: &[u8],
        links: usize,
    ) -> Result<(), StepError> {
        let failed = |error| StepError("create the directory of", error);
        let mut was_gone = false;
        match fs::statat(directory, part, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
            Ok(stat) if attributes::is_whiteout(&stat) => {
                fs::unlinkat(directory, part, AtFlags::empty()).map_err(failed)?;
                was_gone = true;
            }
            // A link to a directory of the layers below: the entry goes to the link's target.
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                if links == MAX_LINKS {
                    return Err(failed(Errno::LOOP));
                }
                let target = fs::readlinkat(directory, part, Vec::new()).map_err(failed)?;
                let parent = &here[..here.len() - part.len()];
                let target = follow(parent, target.as_bytes(), self.depth);
                let target = target.ok_or(failed(Errno::LOOP))?;
                return self.make(&target, links + 1).map(drop);
            }
            Ok(_) => return Err(failed(Errno::NOTDIR)),
        }
        let mode = Mode::from_raw_mode(0o755);
        fs::mkdirat(directory, part, mode).map_err(failed)?;
        // Independent of this process's umask.
        fs::chmodat(directory, part, mode, AtFlags::empty()).map_err(failed)?;
        if was_gone {
            let made = self.open(here).map_err(failed)?;
            attributes::make_opaque(&made).map_err(failed)?;
        }
        self.made += 1;
        self.implicit_bytes += here.len();
        self.implicit.insert(PathBuf::from(OsStr::from_bytes(here)));
        if self.implicit.len() > MAX_IMPLICIT || self.implicit_bytes > MAX_IMPLICIT_BYTES {
            return Err(failed(Errno::TOOBIG));
        }
        Ok(())
    }
}

/// The target of a link in the directory `parent`, by its text. `..` never leads above the root.
fn follow(parent: &[u8], target: &[u8], depth: usize) -> Option<Vec<u8>> {
    let start: &[u8] = if target.starts_with(b"/") {
        &[]
    } else {
        parent
    };
    let mut parts: Vec<&[u8]> = Vec::new();
    let all = start.split(|byte| *byte == b'/');
    for part in all.chain(target.split(|byte| *byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let name = Name::parse(&parts.join(&b'/'), depth).ok()?;
    Some(name.as_bytes().to_vec())
}

/// Reports whether `path` is `directory` or below it.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    let rest = path.strip_prefix(directory);
    directory.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
