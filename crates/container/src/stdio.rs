//! Standard input, output and error of a process, and its terminal.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{FileType, OFlags, ResolveFlags, Uid, fchown, fstat, fstatfs},
    pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::{
    in_root::RootDir,
    step::{Step, StepError},
};

/// Size of a terminal at the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Console {
    /// Rows; 0 keeps the default size.
    pub height: u16,
    /// Columns.
    pub width: u16,
}

/// Magic number of a devpts.
const DEVPTS: i64 = 0x1cd1;

/// Three descriptors, above the standard ones.
#[derive(Debug)]
pub(crate) struct StdioFiles([OwnedFd; 3]);

impl StdioFiles {
    /// Uses these, in their order.
    pub(crate) fn new(files: [OwnedFd; 3]) -> io::Result<Self> {
        let [stdin, stdout, stderr] = files;
        Ok(Self([above(stdin)?, above(stdout)?, above(stderr)?]))
    }

    /// The descriptors.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(AsFd::as_fd)
    }

    /// Changes the owner of pipes and files to the user of the process, so that it can open
    /// `/dev/stdout`.
    pub(crate) fn give_to(&self, uid: Option<Uid>) {
        let Some(uid) = uid else { return };
        for file in &self.0 {
            let Ok(stat) = fstat(file) else { continue };
            // `/dev/null`, and terminals of others.
            let shared = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
            if stat.st_uid != uid.as_raw() && !shared {
                // Fails for some files; then only reopening them does not work.
                let _ = fchown(file, Some(uid), None);
            }
        }
    }

    /// Installs them as the standard streams.
    pub(crate) fn install(&self) -> Result<(), StepError> {
        let [stdin, stdout, stderr] = &self.0;
        rustix::stdio::dup2_stdin(stdin)
            .and_then(|()| rustix::stdio::dup2_stdout(stdout))
            .and_then(|()| rustix::stdio::dup2_stderr(stderr))
            .step(|| "cannot set up standard input, output and error")
    }
}

/// Duplicates the descriptor to a number above the standard ones.
pub(crate) fn above(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

/// A container's terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// The master end.
    pub(crate) master: OwnedFd,
    /// The slave end.
    pub(crate) slave: OwnedFd,
}

impl Terminal {
    /// Creates a terminal in the container's `/dev/pts`. Everything is checked: the container may
    /// have put something else there.
    pub(crate) fn open(root: &RootDir, size: Console, owner: u32) -> Result<Self, StepError> {
        let path = Path::new("/dev/pts/ptmx");
        let what = || "cannot create a terminal in the container's /dev/pts";
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let master = root
            .open(path, flags, ResolveFlags::NO_SYMLINKS)
            .step(what)?;
        if fstatfs(&master).step(what)?.f_type != DEVPTS {
            return Err(StepError(format!("{}: not a devpts", what())));
        }
        unlockpt(&master).step(what)?;
        // TIOCGPTPEER opens the slave by the master's descriptor, not by a path that could be
        // replaced.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave = ioctl_tiocgptpeer(&master, flags).step(what)?;
        if size.height > 0 && size.width > 0 {
            let size = Winsize {
                ws_row: size.height,
                ws_col: size.width,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            tcsetwinsize(&master, size).step(what)?;
        }
        let uid = Uid::from_raw(owner);
        let own = fstat(&slave).step(what)?;
        // The group remains that of the mount option gid= (tty).
        if own.st_uid != uid.as_raw() {
            fchown(&slave, Some(uid), None).step(what)?;
        }
        Ok(Self { master, slave })
    }

    /// Makes it the controlling terminal and the standard streams of this session leader.
    pub(crate) fn install(&self) -> Result<(), StepError> {
        let what = || "cannot set the controlling terminal";
        rustix::process::ioctl_tiocsctty(&self.slave).step(what)?;
        rustix::stdio::dup2_stdin(&self.slave).step(what)?;
        rustix::stdio::dup2_stdout(&self.slave).step(what)?;
        rustix::stdio::dup2_stderr(&self.slave).step(what)
    }
}
