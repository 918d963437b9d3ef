//! New file systems, as detached mounts that are attached later.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::step::{StepError, reason};

/// A file system context (fsopen(2)).
#[derive(Debug)]
pub(crate) struct Filesystem<'a> {
    kind: &'a str,
    fd: OwnedFd,
}

impl<'a> Filesystem<'a> {
    /// Opens a context for a file system type.
    pub(crate) fn open(kind: &'a str) -> Result<Self, StepError> {
        match fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC) {
            Ok(fd) => Ok(Self { kind, fd }),
            Err(error) => {
                let reason = reason(&error.into());
                Err(StepError(format!("file system {kind}: {reason}")))
            }
        }
    }

    /// Sets an option with a value.
    pub(crate) fn set(&self, key: &str, value: &str) -> io::Result<()> {
        Ok(fsconfig_set_string(&self.fd, key, value)?)
    }

    /// Sets an option, `name` or `name=value`.
    pub(crate) fn option(&self, option: &str) -> Result<(), StepError> {
        let result = match option.split_once('=') {
            Some((key, value)) => fsconfig_set_string(&self.fd, key, value),
            None => fsconfig_set_flag(&self.fd, option),
        };
        result.map_err(|error| self.failed(&error.into(), &format!("option {option}")))
    }

    /// Creates a detached mount with these flags (MOUNT_ATTR_…).
    pub(crate) fn mount(&self, attr: u64) -> Result<OwnedFd, StepError> {
        self.try_mount(attr)
            .map_err(|error| self.failed(&error, "mount"))
    }

    /// As [`Self::mount`], with the bare error.
    pub(crate) fn try_mount(&self, attr: u64) -> io::Result<OwnedFd> {
        let attr = u32::try_from(attr).unwrap_or_default();
        fsconfig_create(&self.fd)?;
        let attr = MountAttrFlags::from_bits_retain(attr);
        Ok(fsmount(&self.fd, FsMountFlags::FSMOUNT_CLOEXEC, attr)?)
    }

    /// The error, with the kernel's message from the context if there is one.
    pub(crate) fn failed(&self, error: &io::Error, step: &str) -> StepError {
        let mut text = format!("file system {}: {step}: {}", self.kind, reason(error));
        let mut line = [0_u8; 512];
        while let Ok(length @ 1..) = rustix::io::read(&self.fd, &mut line) {
            let words = String::from_utf8_lossy(&line[..length]);
            // Messages begin with a letter for their level; `e` is an error.
            if let Some(words) = words.strip_prefix("e ") {
                text.push_str("; ");
                text.push_str(words.trim());
            }
        }
        StepError(text)
    }
}

/// Attaches a detached mount on what `target` refers to.
pub(crate) fn attach(mount: impl AsFd, target: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", target, "", flags)?)
}

/// A detached copy of the mount below what the descriptor refers to.
pub(crate) fn copy(of: BorrowedFd<'_>, recursive: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(of, "", flags)?)
}
