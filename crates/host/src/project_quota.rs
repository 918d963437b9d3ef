//! Project quotas: the kernel counts the space of a tree of files while it is written, and can bound
//! it (`quotactl(2)`, `FS_IOC_FSSETXATTR` of `ioctl_xfs_fsgetxattr(2)`). XFS and ext4 have them where
//! they were made and mounted so.
//!
//! A project is a number. The directory of a tree has it with a flag, and what is made in the directory
//! inherits both. Whoever owns a file and is in no user namespace can change its project, so what these
//! functions return is to be trusted only for trees that no such process can write.

mod kernel;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use rustix::{fs::Mode, io::Errno};

use crate::tree_usage::{self, DIR_FLAGS, TreeUsage};

/// The flag of directories whose new files get their project: `FS_XFLAG_PROJINHERIT`.
const INHERIT: u32 = 0x200;
/// The space of projects is counted: `FS_QUOTA_PDQ_ACCT`.
const COUNTED: u16 = 1 << 4;
/// Bounds of projects hold: `FS_QUOTA_PDQ_ENFD`.
const BOUNDED: u16 = 1 << 5;

/// The number of a project. 0 is that of all files without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectId(pub u32);

/// The project of a directory and of what is made in it, where that is its own: not the one of the directory
/// above, which may be that of the whole machine. `None` if there is none, and where the file system has no
/// projects.
///
/// # Errors
/// The kernel returns another error.
pub fn of_directory(dir: impl AsFd) -> io::Result<Option<ProjectId>> {
    let Some(project) = inherited_from(dir.as_fd())? else {
        return Ok(None);
    };
    let above = rustix::fs::openat(dir, "..", DIR_FLAGS, Mode::empty())?;
    Ok((inherited_from(above.as_fd())? != Some(project)).then_some(project))
}

/// The project that what is made in a directory gets.
fn inherited_from(dir: BorrowedFd<'_>) -> io::Result<Option<ProjectId>> {
    let attributes = match kernel::attributes(dir) {
        Err(error) if is_unsupported(error) => return Ok(None),
        found => found?,
    };
    let inherits = attributes.flags & INHERIT != 0 && attributes.project != 0;
    Ok(inherits.then_some(ProjectId(attributes.project)))
}

/// Puts an empty directory, and what will be made in it, into a project.
///
/// # Errors
/// The file system has no projects, or the kernel returns another error.
pub fn set_directory(dir: impl AsFd, project: ProjectId) -> io::Result<()> {
    let dir = dir.as_fd();
    let mut attributes = kernel::attributes(dir)?;
    attributes.project = project.0;
    attributes.flags |= INHERIT;
    Ok(kernel::set_attributes(dir, attributes)?)
}

/// What a file system does about projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectSupport {
    /// Nothing.
    None,
    /// Their space is counted.
    Counted,
    /// It is counted, and bounds hold: the file system is mounted with the option `prjquota`.
    Bounded,
}

/// What the file system of a directory does about projects.
///
/// # Errors
/// The kernel returns one.
pub fn support(dir: impl AsFd) -> io::Result<ProjectSupport> {
    let state = match kernel::state(dir.as_fd()) {
        Err(error) if is_unsupported(error) => return Ok(ProjectSupport::None),
        found => found?,
    };
    Ok(match (state & COUNTED != 0, state & BOUNDED != 0) {
        (false, _) => ProjectSupport::None,
        (true, false) => ProjectSupport::Counted,
        (true, true) => ProjectSupport::Bounded,
    })
}

/// The space of all files of a project on the file system of a directory, also of removed ones that are still
/// open; `None` where projects are not counted.
///
/// # Errors
/// The kernel returns another error.
pub fn usage(dir: impl AsFd, project: ProjectId) -> io::Result<Option<TreeUsage>> {
    let quota = match kernel::quota(dir.as_fd(), project.0) {
        // XFS: nothing was ever counted.
        Err(Errno::NOENT) => return Ok(Some(TreeUsage::default())),
        Err(error) if is_unsupported(error) => return Ok(None),
        found => found?,
    };
    Ok(Some(TreeUsage {
        bytes: quota.dqb_curspace,
        inodes: quota.dqb_curinodes,
        is_partial: false,
    }))
}

/// Sets the most bytes that files of a project may have together, rounded up to whole KiB; `None` for no
/// bound. It holds with [`ProjectSupport::Bounded`], but not for processes with `CAP_SYS_RESOURCE` outside of
/// user namespaces.
///
/// # Errors
/// The kernel returns one.
pub fn set_bound(dir: impl AsFd, project: ProjectId, bytes: Option<u64>) -> io::Result<()> {
    let blocks = bytes.map_or(0, |bytes| bytes.div_ceil(kernel::QUOTA_BLOCK).max(1));
    Ok(kernel::set_bound(dir.as_fd(), project.0, blocks)?)
}

/// The usage of a directory: what the kernel counts for its project, else that of its files, added up. A project is
/// not looked at where a process that writes there could have changed it: without `may_have_project`.
///
/// # Errors
/// As [`tree_usage::of`].
pub fn usage_of_tree(path: &Path, may_have_project: bool) -> io::Result<TreeUsage> {
    let dir = rustix::fs::open(path, DIR_FLAGS, Mode::empty())?;
    if may_have_project
        && let Some(project) = of_directory(&dir)?
        && let Some(counted) = usage(&dir, project)?
    {
        return Ok(counted);
    }
    tree_usage::of_open(&dir)
}

/// What kernels and file systems without projects, or without counted ones, answer.
fn is_unsupported(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOSYS | Errno::NOTTY | Errno::OPNOTSUPP | Errno::SRCH | Errno::INVAL
    )
}

#[cfg(test)]
mod tests;
