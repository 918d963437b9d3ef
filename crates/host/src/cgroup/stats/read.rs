//! Reads the kernel's small files into one buffer.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::CgroupPath;
use rustix::{
    buffer::spare_capacity,
    fs::{Mode, OFlags, open, openat},
    io::read,
};

use super::{CgroupFs, PidsStats, StatsError, StatsScope};

/// Bytes that most files fit into.
const USUAL: usize = 4096;

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Cgroups whose directories are kept open at most: those of all pods, and of the pods of each QoS class.
const MOST_BASES: usize = 4;
/// A kept cgroup is at most so many directories above one that is read: a container's is below its pod's, and that may be
/// below the QoS class's.
const MOST_BELOW: usize = 3;

/// Reads the numbers of cgroups, one after the other. It keeps directories above them open and goes on from there: the
/// kernel takes longer for a file with each directory on the way to it, and longest for one that has to be opened.
pub struct StatsReader<'a> {
    pub(super) fs: &'a CgroupFs,
    bases: Vec<Base>,
    /// The base of the cgroup that is being read.
    base: Option<usize>,
    text: Vec<u8>,
    /// The way from an open directory to a file.
    way: String,
}

/// A cgroup above others.
struct Base {
    path: CgroupPath,
    /// Its directories that were needed, in the order of the hierarchies.
    dirs: Vec<Option<OwnedFd>>,
}

impl<'a> StatsReader<'a> {
    pub(super) fn new(fs: &'a CgroupFs) -> Self {
        Self {
            fs,
            bases: Vec::new(),
            base: None,
            text: Vec::with_capacity(USUAL),
            way: String::new(),
        }
    }

    /// Prepares to read the cgroup `path`.
    pub(super) fn enter(&mut self, path: &CgroupPath) {
        let is_near = |base: &Base| {
            let rest = below(&base.path, path.relative());
            rest.is_some_and(|rest| rest.split('/').count() <= MOST_BELOW)
        };
        self.base = self.bases.iter().position(is_near);
        if self.base.is_none()
            && let Some(parent) = path.parent()
        {
            if self.bases.len() == MOST_BASES {
                self.bases.clear();
            }
            self.base = Some(self.bases.len());
            self.bases.push(Base {
                path: parent,
                dirs: self.fs.hierarchies.iter().map(|_| None).collect(),
            });
        }
    }

    /// The directory of a controller, relative to its mount; `None` if version 1 has not mounted it.
    pub(super) fn dir<'r>(
        &'r mut self,
        controller: &str,
        relative: &'r str,
    ) -> Option<StatsDir<'r>> {
        let index = self.fs.hierarchy(controller)?;
        let root = &*self.fs.hierarchies[index].mount;
        let mut dir = StatsDir {
            root,
            relative,
            from: None,
            below: relative,
            text: &mut self.text,
            way: &mut self.way,
        };
        if let Some(base) = self.base.map(|base| &mut self.bases[base])
            && let Some(rest) = below(&base.path, relative)
        {
            let kept = &mut base.dirs[index];
            if kept.is_none() {
                // One that can't be opened is reported with its first file.
                let base = root.join(base.path.relative());
                *kept = open(base, DIRECTORY, Mode::empty()).ok();
            }
            if let Some(kept) = kept {
                (dir.from, dir.below) = (Some(Directory::Kept(kept)), rest);
            }
        }
        Some(dir)
    }
}

/// The path of a cgroup from one above it; empty for itself.
fn below<'p>(base: &CgroupPath, relative: &'p str) -> Option<&'p str> {
    let rest = relative.strip_prefix(base.relative())?;
    match rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

/// A directory of a cgroup and the buffer that its files are read into.
pub(super) struct StatsDir<'r> {
    root: &'r Path,
    relative: &'r str,
    /// An open directory, and the way from there; without one, the whole path is taken.
    from: Option<Directory<'r>>,
    below: &'r str,
    text: &'r mut Vec<u8>,
    way: &'r mut String,
}

enum Directory<'r> {
    Kept(&'r OwnedFd),
    Own(OwnedFd),
}

impl AsFd for Directory<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Kept(dir) => dir.as_fd(),
            Self::Own(dir) => dir.as_fd(),
        }
    }
}

impl StatsDir<'_> {
    /// Opens the directory, for more files than the kernel finds in the same time by the way to them.
    pub(super) fn open(mut self) -> Self {
        if !self.below.is_empty()
            && let Some(from) = &self.from
            && let Ok(dir) = openat(from, self.below, DIRECTORY, Mode::empty())
        {
            (self.from, self.below) = (Some(Directory::Own(dir)), "");
        }
        self
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root.join(self.relative)
    }

    /// The text of a required file.
    pub(super) fn text(&mut self, name: &str) -> Result<&str, StatsError> {
        let (root, relative) = (self.root, self.relative);
        let read = self
            .read(name)
            .and_then(|()| std::str::from_utf8(self.text).map_err(io::Error::other));
        read.map_err(|source| StatsError::Read {
            file: root.join(relative).join(name),
            source,
        })
    }

    fn read(&mut self, name: &str) -> io::Result<()> {
        let (flags, mode) = (OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = match &self.from {
            Some(dir) => {
                self.way.clear();
                if !self.below.is_empty() {
                    self.way.push_str(self.below);
                    self.way.push('/');
                }
                self.way.push_str(name);
                openat(dir, self.way.as_str(), flags, mode)?
            }
            None => open(self.path().join(name), flags, mode)?,
        };
        self.text.clear();
        loop {
            self.text.reserve(USUAL / 2);
            let most = self.text.capacity() - self.text.len();
            // The kernel makes all of such a file for one read, so one that leaves room has the end.
            if read(&file, spare_capacity(self.text))? < most {
                return Ok(());
            }
        }
    }

    /// The text of a file that may be missing or disabled.
    pub(super) fn optional(&mut self, name: &str) -> Result<Option<&str>, StatsError> {
        match self.text(name) {
            Ok(text) => Ok(Some(text)),
            Err(StatsError::Read { source, .. }) if is_missing(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The only number of a file; `None` for `max`.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>, StatsError> {
        Ok(self.text(name)?.trim().parse().ok())
    }

    /// Like [`Self::number`], for a file that may be missing.
    pub(super) fn optional_number(&mut self, name: &str) -> Result<Option<u64>, StatsError> {
        let text = self.optional(name)?;
        Ok(text.and_then(|text| text.trim().parse().ok()))
    }

    /// The files of the pids controller, which are the same in both versions; `None` if there are none.
    pub(super) fn pids(&mut self, scope: StatsScope) -> Result<Option<PidsStats>, StatsError> {
        let Some(current) = self.optional_number("pids.current")? else {
            return Ok(None);
        };
        let limit = match scope {
            StatsScope::Counters | StatsScope::All => self.number("pids.max")?,
            StatsScope::Usage | StatsScope::UsageAndPids => None,
        };
        Ok(Some(PidsStats { current, limit }))
    }
}

/// EOPNOTSUPP means that pressure was disabled on the kernel's command line.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::EOPNOTSUPP)
}

/// The lines `name value` of a file.
pub(super) fn fields(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name, value.trim().parse().ok()?))
    })
}

/// A device in the kernel's format: `254:0`.
pub(super) fn device(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Page sizes among the files of the hugetlb controller, from names such as `hugetlb.2MB.max`.
pub(super) fn page_sizes(dir: &Path, suffix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut sizes: Vec<String> = names
        .filter_map(|name| {
            let size = name.strip_prefix("hugetlb.")?.strip_suffix(suffix)?;
            // Not the reservations, which have an additional component.
            (!size.contains('.')).then(|| size.to_owned())
        })
        .collect();
    sizes.sort();
    sizes
}
