//! Finding and making the folder that an entry is in.

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

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// Links are followed as a process in the container would, and no mount is entered.
const RESOLVE: ResolveFlags = ResolveFlags::IN_ROOT
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
/// Somebody who moves folders elsewhere on the machine can make the kernel unsure.
const TRIES: usize = 100;
/// More folders without an entry of their own, or longer names of them, are no accident.
const MAX_IMPLICIT: usize = 100_000;
const MAX_IMPLICIT_BYTES: usize = 8 << 20;
/// Links to links, before they count as a ring.
const MAX_LINKS: usize = 20;

/// The folder of a layer, while it is filled.
pub(super) struct Place {
    root: OwnedFd,
    /// The folder that was used last: entries come folder by folder.
    last: Option<(Vec<u8>, OwnedFd)>,
    /// Folders that were made because something is in them.
    pub(super) implicit: BTreeSet<PathBuf>,
    /// How many were made, also those that got an entry later.
    pub(super) made: u64,
    /// The bytes of their names together.
    implicit_bytes: usize,
    /// The folders on the way to the last one, and the times they shall have: whatever is made in
    /// a folder changes its times, so that they are set when the archive goes elsewhere.
    times: Vec<(Vec<u8>, Timestamps)>,
    depth: usize,
}

/// What failed.
pub(super) struct Failed(pub(super) &'static str, pub(super) Errno);

impl Place {
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

    /// Paths may lead elsewhere than before.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// The folder at `path`, as it is.
    pub(super) fn open(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        // `openat2` takes no empty path.
        let path = if path.is_empty() { b"." } else { path };
        for _ in 0..TRIES {
            match fs::openat2(&self.root, path, FOLDER, Mode::empty(), RESOLVE) {
                Err(Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    /// The folder at `path`, made if it is not there, for something to be made in it.
    pub(super) fn folder(&mut self, path: &[u8]) -> Result<&OwnedFd, Failed> {
        let is_last = self.last.as_ref().is_some_and(|(last, _)| last == path);
        if !is_last {
            self.leave(path)?;
            let folder = match self.open(path) {
                Err(Errno::NOENT | Errno::NOTDIR) => self.make(path, 0)?,
                folder => folder.map_err(|error| Failed("open the folder of", error))?,
            };
            self.keep_times(path, &folder)?;
            self.last = Some((path.to_vec(), folder));
        }
        match &self.last {
            Some((_, folder)) => Ok(folder),
            None => Err(Failed("open the folder of", Errno::NOENT)),
        }
    }

    /// Sets the times of the folders that are not on the way to `path`.
    fn leave(&mut self, path: &[u8]) -> Result<(), Failed> {
        while let Some((folder, _)) = self.times.last()
            && !is_within(path, folder)
        {
            self.settle()?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failed> {
        let Some((path, times)) = self.times.pop() else {
            return Ok(());
        };
        match self
            .open(&path)
            .and_then(|folder| fs::futimens(folder, &times))
        {
            // A later entry took its place.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(error) => Err(Failed("set the times of the folder of", error)),
        }
    }

    /// Sets the times of all folders that are left.
    pub(super) fn finish(&mut self) -> Result<(), Failed> {
        while !self.times.is_empty() {
            self.settle()?;
        }
        Ok(())
    }

    /// Gives a folder its times. It is the one at `path`, in which something was just made.
    pub(super) fn set_times(&mut self, path: &[u8], times: Timestamps) {
        match self.times.last_mut() {
            Some((last, known)) if last == path => *known = times,
            _ => self.times.push((path.to_vec(), times)),
        }
    }

    /// Notes the times of a folder, unless they are known.
    fn keep_times(&mut self, path: &[u8], folder: &OwnedFd) -> Result<(), Failed> {
        if self.times.last().is_some_and(|(last, _)| last == path) {
            return Ok(());
        }
        let stat = fs::fstat(folder).map_err(|error| Failed("look at the folder of", error))?;
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

    /// Goes along `path` and makes what is missing.
    fn make(&mut self, path: &[u8], links: usize) -> Result<OwnedFd, Failed> {
        let failed = |error| Failed("make the folder of", error);
        let mut folder = self.open(b"").map_err(failed)?;
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends: Vec<usize> = ends.map(|(at, _)| at).chain([path.len()]).collect();
        for end in ends {
            let here = &path[..end];
            let start = here
                .iter()
                .rposition(|byte| *byte == b'/')
                .map_or(0, |at| at + 1);
            let part = &here[start..];
            folder = match self.open(here) {
                Ok(folder) => folder,
                Err(Errno::NOENT | Errno::NOTDIR) => {
                    self.keep_times(&here[..start.saturating_sub(1)], &folder)?;
                    self.make_part(&folder, here, part, links)?;
                    self.open(here).map_err(failed)?
                }
                Err(error) => return Err(failed(error)),
            };
        }
        Ok(folder)
    }

    fn make_part(
        &mut self,
        folder: &OwnedFd,
        here: &[u8],
        part: &[u8],
        links: usize,
    ) -> Result<(), Failed> {
        let failed = |error| Failed("make the folder of", error);
        let mut was_gone = false;
        match fs::statat(folder, part, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
            Ok(stat) if attributes::is_whiteout(&stat) => {
                fs::unlinkat(folder, part, AtFlags::empty()).map_err(failed)?;
                was_gone = true;
            }
            // A link to a folder of the layers below: the entry goes to where the link leads.
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                if links == MAX_LINKS {
                    return Err(failed(Errno::LOOP));
                }
                let target = fs::readlinkat(folder, part, Vec::new()).map_err(failed)?;
                let parent = &here[..here.len() - part.len()];
                let target = follow(parent, target.as_bytes(), self.depth);
                let target = target.ok_or(failed(Errno::LOOP))?;
                return self.make(&target, links + 1).map(drop);
            }
            Ok(_) => return Err(failed(Errno::NOTDIR)),
        }
        let mode = Mode::from_raw_mode(0o755);
        fs::mkdirat(folder, part, mode).map_err(failed)?;
        // Whatever this process masks.
        fs::chmodat(folder, part, mode, AtFlags::empty()).map_err(failed)?;
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

/// Where a link in the folder `parent` leads, by its text. `..` never leads above the root.
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

/// Whether `path` is `folder` or something in it.
fn is_within(path: &[u8], folder: &[u8]) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
