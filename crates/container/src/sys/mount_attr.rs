//! `mount_setattr`: flags, propagation and ID mapping of mounts.

#![expect(unsafe_code, reason = "mount_setattr is in no library")]

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

/// The kernel's `struct mount_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MountAttr {
    /// Flags (MOUNT_ATTR_…) that are set.
    pub(crate) set: u64,
    /// Flags that are cleared.
    pub(crate) clear: u64,
    /// One of MS_PRIVATE, MS_SLAVE, MS_SHARED, MS_UNBINDABLE, or 0 to leave it.
    pub(crate) propagation: u64,
    /// Descriptor of the user namespace whose IDs MOUNT_ATTR_IDMAP takes.
    pub(crate) userns: u64,
}

impl MountAttr {
    /// Reports whether it changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Maps IDs as a user namespace does.
    pub(crate) fn idmap(userns: BorrowedFd<'_>) -> Self {
        Self {
            set: libc::MOUNT_ATTR_IDMAP,
            userns: u64::from(userns.as_raw_fd().cast_unsigned()),
            ..Self::default()
        }
    }

    /// Changes the propagation alone.
    pub(crate) fn propagation(propagation: u64) -> Self {
        Self {
            propagation,
            ..Self::default()
        }
    }

    /// Makes mounts read-only.
    pub(crate) fn read_only() -> Self {
        Self {
            set: libc::MOUNT_ATTR_RDONLY,
            ..Self::default()
        }
    }
}

/// Changes the mount that the descriptor is the root of, and those below it if `recursive`.
pub(crate) fn change(mount: impl AsFd, attr: &MountAttr, recursive: bool) -> io::Result<()> {
    if attr.is_empty() {
        return Ok(());
    }
    let mut flags = libc::AT_EMPTY_PATH;
    if recursive {
        flags |= libc::AT_RECURSIVE;
    }
    let mount = mount.as_fd().as_raw_fd();
    // SAFETY: the path is a string with a zero byte, `attr` has the layout and size that are
    // passed, and both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount,
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attr),
            size_of::<MountAttr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
