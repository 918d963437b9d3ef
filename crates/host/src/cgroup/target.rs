//! A cgroup that a process is about to join: its files are open, so that joining needs neither a
//! path nor memory, and works after the process has left the host's mount namespace.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};
use rustix::fs::{Mode, OFlags};

use super::{CgroupFs, ensure::EnsureError};

/// Why a cgroup can't be prepared for processes.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// It can't be created completely.
    #[error(transparent)]
    Ensure(#[from] EnsureError),
    /// It can't be opened.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Why processes can't join a cgroup.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A file of it can't be opened.
    #[error("cannot open {}", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// On version 2 a threaded cgroup accepts single threads or nothing at all.
    #[error("the cgroup {} is of the type `{kind}` and cannot hold a container: only `domain` can", dir.display())]
    Threaded {
        /// Directory of the cgroup.
        dir: PathBuf,
        /// Its type according to the kernel.
        kind: String,
    },
}

/// An open cgroup.
#[derive(Debug)]
pub struct CgroupTarget {
    /// `tasks` of each hierarchy of version 1. A process that moves its only thread through it
    /// avoids a machine-wide lock, which `cgroup.procs` takes: that costs up to 15 ms.
    tasks: Vec<File>,
    /// The cgroup in the unified hierarchy, if there is one.
    unified: Option<Unified>,
    /// `cgroup.procs` of each hierarchy.
    procs: Vec<File>,
}

#[derive(Debug)]
struct Unified {
    dir: OwnedFd,
    /// The mount point of the hierarchy, and the cgroup's path in it.
    mount: PathBuf,
    path: PathBuf,
    /// The index of its file.
    procs: usize,
}

impl CgroupFs {
    /// Creates the cgroup in every hierarchy, enables the controllers for it and opens it. An
    /// existing one is used as it is.
    ///
    /// # Errors
    /// It can't be created or opened. A controller that can't be enabled is not an error here:
    /// values that need it are rejected when they are written.
    pub fn create(&self, path: &CgroupPath) -> Result<CgroupTarget, CreateError> {
        match self.ensure(path) {
            Ok(()) | Err(EnsureError::Controllers(_)) => Ok(self.target(path)?),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a cgroup that exists.
    ///
    /// # Errors
    /// It does not exist in some hierarchy, or can't hold processes.
    pub fn target(&self, path: &CgroupPath) -> Result<CgroupTarget, TargetError> {
        let mut target = CgroupTarget {
            tasks: Vec::with_capacity(self.hierarchies.len()),
            unified: None,
            procs: Vec::with_capacity(self.hierarchies.len()),
        };
        for hierarchy in &self.hierarchies {
            let dir = hierarchy.dir(path);
            // Only the unified hierarchy has no controllers of version 1.
            if hierarchy.controllers.is_empty() {
                if self.layout == CgroupLayout::V2 {
                    check_type(&dir)?;
                }
                target.unified = Some(Unified {
                    dir: open_dir(&dir)?,
                    mount: hierarchy.mount.clone(),
                    path: dir.clone(),
                    procs: target.procs.len(),
                });
            } else {
                target.tasks.push(open_file(dir.join("tasks"))?);
            }
            target.procs.push(open_file(dir.join("cgroup.procs"))?);
        }
        Ok(target)
    }
}

impl CgroupTarget {
    /// Moves the calling process, which must be single-threaded, into the cgroup, in every
    /// hierarchy. Allocates nothing and takes no lock, so that it may be called between a fork and
    /// an exec.
    ///
    /// # Errors
    /// The kernel returns an error: ENOSPC for a cpuset without processors, EAGAIN if `pids.max` is
    /// reached, EBUSY if version 2 allows processes only in descendants.
    pub fn join_self(&self) -> io::Result<()> {
        self.join_rest()?;
        if let Some(unified) = &self.unified {
            rustix::io::write(&self.procs[unified.procs], b"0")?;
        }
        Ok(())
    }

    /// Like [`Self::join_self`], for a process that was cloned into [`Self::dir`]: the other
    /// hierarchies.
    ///
    /// # Errors
    /// As [`Self::join_self`].
    pub fn join_rest(&self) -> io::Result<()> {
        for file in &self.tasks {
            rustix::io::write(file, b"0")?;
        }
        Ok(())
    }

    /// Moves a process into the cgroup, in every hierarchy.
    ///
    /// # Errors
    /// As [`Self::join_self`]; ESRCH if there is no such process any more.
    pub fn add(&self, pid: i32) -> io::Result<()> {
        for file in &self.procs {
            rustix::io::write(file, pid.to_string().as_bytes())?;
        }
        Ok(())
    }

    /// The directory in the unified hierarchy, for a `clone3` with CLONE_INTO_CGROUP; `None` if
    /// only version 1 is mounted. A process that is cloned into it still has to
    /// [join](Self::join_rest) the other hierarchies.
    #[must_use]
    pub fn dir(&self) -> Option<BorrowedFd<'_>> {
        self.unified.as_ref().map(|unified| unified.dir.as_fd())
    }

    /// The unified hierarchy's cgroup directory of a process, which is this cgroup or a descendant.
    /// On version 2 a cgroup that enables controllers for its children can't hold processes itself
    /// (EBUSY); a process in one of the children shows which cgroup can.
    ///
    /// # Errors
    /// The process has exited, or is in another cgroup.
    pub fn dir_of(&self, process: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let unified = self.unified.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let about = format!("/proc/self/fdinfo/{}", process.as_raw_fd());
        let pid = value(&std::fs::read_to_string(about)?, "Pid:")
            .and_then(|pid| pid.parse::<u32>().ok())
            .ok_or(io::Error::from_raw_os_error(libc::ESRCH))?;
        let cgroups = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let dir = value(&cgroups, "0::/").map(|path| unified.mount.join(path));
        let dir = dir.filter(|dir| dir.starts_with(&unified.path));
        let dir = dir.ok_or_else(|| {
            io::Error::other("the container's first process has left the container's cgroup")
        })?;
        open_dir(&dir).map_err(io::Error::other)
    }
}

/// The rest of a line after its beginning.
fn value<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    lines
        .find_map(|line| line.strip_prefix(beginning))
        .map(str::trim)
}

fn check_type(dir: &Path) -> Result<(), TargetError> {
    let file = dir.join("cgroup.type");
    let kind = std::fs::read_to_string(&file).map_err(|source| TargetError::Open {
        file: file.clone(),
        source,
    })?;
    match kind.trim() {
        // The second is what the first becomes when it gets threaded children.
        "domain" | "domain threaded" => Ok(()),
        other => Err(TargetError::Threaded {
            dir: dir.to_owned(),
            kind: other.to_owned(),
        }),
    }
}

fn open_file(file: PathBuf) -> Result<File, TargetError> {
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
