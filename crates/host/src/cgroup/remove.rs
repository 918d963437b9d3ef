//! Removes cgroups. Never kills: a cgroup with processes stays.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::CgroupPath;

use super::{CgroupFs, child_dirs, is_gone};

/// The result of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CgroupRemoval {
    /// The cgroup was removed from every hierarchy, or did not exist.
    Gone,
    /// It has processes, or the kernel has not cleaned up exited ones yet. Retry a little later.
    StillBusy {
        /// Directory of the cgroup that could not be removed.
        dir: PathBuf,
    },
}

/// Why a cgroup can't be removed, apart from being busy.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove the cgroup {}", dir.display())]
pub struct RemoveError {
    dir: PathBuf,
    source: io::Error,
}

impl CgroupFs {
    /// Removes the cgroup and the empty ones that runtimes left in it, from every hierarchy.
    ///
    /// # Errors
    /// A directory can't be removed for a reason other than being busy.
    pub fn remove(&self, path: &CgroupPath) -> Result<CgroupRemoval, RemoveError> {
        let mut busy = None;
        for hierarchy in &self.hierarchies {
            busy = remove_tree(&hierarchy.dir(path))?.or(busy);
        }
        Ok(busy.map_or(CgroupRemoval::Gone, |dir| CgroupRemoval::StillBusy { dir }))
    }
}

/// The directory that is still busy, if there is one.
fn remove_tree(dir: &Path) -> Result<Option<PathBuf>, RemoveError> {
    let failed = |source| RemoveError {
        dir: dir.to_owned(),
        source,
    };
    if remove_one(dir).map_err(failed)? {
        return Ok(None);
    }
    let mut busy = None;
    for child in child_dirs(dir).map_err(failed)? {
        busy = remove_tree(&child)?.or(busy);
    }
    if busy.is_some() || remove_one(dir).map_err(failed)? {
        return Ok(busy);
    }
    Ok(Some(dir.to_owned()))
}

/// Whether the directory is gone now. The kernel returns EBUSY both for processes and for child
/// cgroups.
fn remove_one(dir: &Path) -> io::Result<bool> {
    match fs::remove_dir(dir) {
        Ok(()) => Ok(true),
        Err(error) if is_gone(&error) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EBUSY | libc::ENOTEMPTY) => Ok(false),
            _ => Err(error),
        },
    }
}
