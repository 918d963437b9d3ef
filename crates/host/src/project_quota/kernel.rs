//! The system calls, which rustix does not offer.

#![expect(unsafe_code, reason = "system calls that rustix does not offer")]

use std::{
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::{
    io::Errno,
    ioctl::{Getter, Opcode, Setter, ioctl, opcode},
};

/// `struct fsxattr` of `linux/fs.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct FileAttributes {
    /// `fsx_xflags`.
    pub(super) flags: u32,
    extent_size: u32,
    extents: u32,
    /// `fsx_projid`.
    pub(super) project: u32,
    copy_extent_size: u32,
    padding: [u8; 8],
}

/// `FS_IOC_FSGETXATTR`.
const GET_ATTRIBUTES: Opcode = opcode::read::<FileAttributes>(b'X', 31);
/// `FS_IOC_FSSETXATTR`.
const SET_ATTRIBUTES: Opcode = opcode::write::<FileAttributes>(b'X', 32);

/// The unit of limits: `QIF_DQBLKSIZE` of `linux/quota.h`.
pub(super) const QUOTA_BLOCK: u64 = 1024;
/// `QIF_BLIMITS`: only the limits of space are set.
const SPACE_LIMITS: u32 = 1;
/// `Q_GETQUOTA`.
const GET_QUOTA: u32 = 0x80_0007;
/// `Q_SETQUOTA`.
const SET_QUOTA: u32 = 0x80_0008;
/// `Q_XGETQSTATV`, which all file systems answer.
const GET_STATE: u32 = 0x5808;
/// `PRJQUOTA`.
const PROJECT: u32 = 2;

pub(super) fn attributes(file: BorrowedFd<'_>) -> Result<FileAttributes, Errno> {
    // SAFETY: the kernel writes a `struct fsxattr`, which is `FileAttributes`.
    let get = unsafe { Getter::<GET_ATTRIBUTES, FileAttributes>::new() };
    // SAFETY: it changes nothing.
    unsafe { ioctl(file, get) }
}

pub(super) fn set_attributes(
    file: BorrowedFd<'_>,
    attributes: FileAttributes,
) -> Result<(), Errno> {
    // SAFETY: the kernel reads a `struct fsxattr`, which is `FileAttributes`.
    let set = unsafe { Setter::<SET_ATTRIBUTES, FileAttributes>::new(attributes) };
    // SAFETY: it changes no memory.
    unsafe { ioctl(file, set) }
}

/// `struct fs_quota_statv` of `linux/dqblk_xfs.h`.
#[repr(C)]
struct QuotaState {
    /// The form in which the kernel is to answer: 1.
    version: i8,
    padding: u8,
    flags: u16,
    /// More than all the rest.
    rest: [u64; 64],
}

/// Which quotas are on, on the file system of a file: flags `FS_QUOTA_…`.
pub(super) fn state(file: BorrowedFd<'_>) -> Result<u16, Errno> {
    let mut state = QuotaState {
        version: 1,
        padding: 0,
        flags: 0,
        rest: [0; 64],
    };
    quotactl(file, GET_STATE, 0, &raw mut state)?;
    Ok(state.flags)
}

/// What is counted of a project on the file system of a file, and its limits.
pub(super) fn quota(file: BorrowedFd<'_>, project: u32) -> Result<libc::dqblk, Errno> {
    let mut quota = MaybeUninit::<libc::dqblk>::zeroed();
    quotactl(file, GET_QUOTA, project, quota.as_mut_ptr())?;
    // SAFETY: all fields are integers, and zero where the kernel wrote nothing.
    Ok(unsafe { quota.assume_init() })
}

/// Sets the hard limit of a project, in units of [`QUOTA_BLOCK`]; 0 for none.
pub(super) fn set_bound(file: BorrowedFd<'_>, project: u32, blocks: u64) -> Result<(), Errno> {
    let mut quota = libc::dqblk {
        dqb_bhardlimit: blocks,
        dqb_bsoftlimit: 0,
        dqb_curspace: 0,
        dqb_ihardlimit: 0,
        dqb_isoftlimit: 0,
        dqb_curinodes: 0,
        dqb_btime: 0,
        dqb_itime: 0,
        dqb_valid: SPACE_LIMITS,
    };
    quotactl(file, SET_QUOTA, project, &raw mut quota)
}

/// `quotactl_fd(2)`, since Linux 5.14.
fn quotactl<T>(
    file: BorrowedFd<'_>,
    command: u32,
    project: u32,
    data: *mut T,
) -> Result<(), Errno> {
    let command = (command << 8) | PROJECT;
    let file = file.as_raw_fd();
    // SAFETY: the kernel reads or writes the structure of the command, which the caller owns.
    let done = unsafe { libc::syscall(libc::SYS_quotactl_fd, file, command, project, data) };
    match done {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
