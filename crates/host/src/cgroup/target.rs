//! A cgroup that a process is about to be put into: its files are open, so that joining it needs
//! neither a path nor memory, and works after the process lost sight of the host's mounts.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rubelet_base::cgroup::CgroupPath;
use rustix::fs::{Mode, OFlags};

use super::{CgroupFs, CgroupLayout, ensure::EnsureError};

/// Why a cgroup can't be made ready for processes.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// It can't be made, or not whole.
    #[error(transparent)]
    Ensure(#[from] EnsureError),
    /// It can't be opened.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Why processes can't be put into a cgroup.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A file of it can't be opened.
    #[error("cannot open {}", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// On version 2 a cgroup whose type isn't `domain` takes single threads or nothing at all.
    #[error("the cgroup {} is of the type `{kind}` and can't hold a container: only `domain` can", dir.display())]
    Threaded {
        /// Folder of the cgroup.
        dir: PathBuf,
        /// What the kernel says of it.
        kind: String,
    },
}

/// An open cgroup.
#[derive(Debug)]
pub struct CgroupTarget {
    /// `cgroup.procs` of each hierarchy.
    procs: Vec<File>,
    /// Folder of the cgroup on version 2.
    dir: Option<OwnedFd>,
}

impl CgroupFs {
    /// Makes the cgroup in every hierarchy, hands the controllers down to it and opens it. One that
    /// is there already is taken as it is.
    ///
    /// # Errors
    /// It can't be made or opened. A controller that can't be handed down is no error here: values
    /// that need it are refused when they are written.
    pub fn create(&self, path: &CgroupPath) -> Result<CgroupTarget, CreateError> {
        match self.ensure(path) {
            Ok(()) | Err(EnsureError::Controllers(_)) => Ok(self.target(path)?),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a cgroup that exists.
    ///
    /// # Errors
    /// It isn't there in some hierarchy, or can't hold processes.
    pub fn target(&self, path: &CgroupPath) -> Result<CgroupTarget, TargetError> {
        let mut procs = Vec::with_capacity(self.hierarchies.len());
        for hierarchy in &self.hierarchies {
            let dir = hierarchy.dir(path);
            if self.layout == CgroupLayout::V2 {
                check_type(&dir)?;
            }
            procs.push(open_procs(&dir)?);
        }
        let dir = match (self.layout, self.hierarchies.first()) {
            (CgroupLayout::V2, Some(hierarchy)) => Some(open_dir(&hierarchy.dir(path))?),
            _ => None,
        };
        Ok(CgroupTarget { procs, dir })
    }
}

impl CgroupTarget {
    /// Puts the calling process into the cgroup, in every hierarchy. Allocates nothing and takes no
    /// lock, so that it may be called between a fork and an exec.
    ///
    /// # Errors
    /// The kernel refuses: ENOSPC for a cpuset without processors, EAGAIN where `pids.max` is
    /// reached, EBUSY where version 2 has processes further down only.
    pub fn join_self(&self) -> io::Result<()> {
        self.write(b"0")
    }

    /// Puts a process into the cgroup, in every hierarchy.
    ///
    /// # Errors
    /// As [`Self::join_self`]; ESRCH if there is no such process any more.
    pub fn add(&self, pid: i32) -> io::Result<()> {
        self.write(pid.to_string().as_bytes())
    }

    /// The folder on version 2, for a `clone3` with CLONE_INTO_CGROUP; `None` on version 1.
    #[must_use]
    pub fn dir(&self) -> Option<BorrowedFd<'_>> {
        self.dir.as_ref().map(AsFd::as_fd)
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        for file in &self.procs {
            rustix::io::write(file, text)?;
        }
        Ok(())
    }
}

fn check_type(dir: &Path) -> Result<(), TargetError> {
    let file = dir.join("cgroup.type");
    let kind = std::fs::read_to_string(&file).map_err(|source| TargetError::Open {
        file: file.clone(),
        source,
    })?;
    match kind.trim() {
        "domain" => Ok(()),
        other => Err(TargetError::Threaded {
            dir: dir.to_owned(),
            kind: other.to_owned(),
        }),
    }
}

fn open_procs(dir: &Path) -> Result<File, TargetError> {
    let file = dir.join("cgroup.procs");
    let opened = OpenOptions::new().write(true).open(&file);
    opened.map_err(|source| TargetError::Open { file, source })
}

fn open_dir(dir: &Path) -> Result<OwnedFd, TargetError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(dir, flags, Mode::empty()).map_err(|error| TargetError::Open {
        file: dir.to_owned(),
        source: error.into(),
    })
}
