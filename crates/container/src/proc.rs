//! Files of `/proc`, as the host has it mounted, and proof that they are what they seem to be.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs, openat, openat2};

use crate::step::{Failure, Step};

/// Opens a file of `/proc` by its path there. To be called before this process gives up the host's
/// mounts: what a container shows as `/proc` is never written to.
pub(crate) fn open(path: impl AsRef<Path>, flags: OFlags) -> io::Result<OwnedFd> {
    let dir = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = openat(CWD, "/proc", dir, Mode::empty())?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = openat2(&proc, path.as_ref(), flags, Mode::empty(), resolve)?;
    if fstatfs(&file)?.f_type != PROC_SUPER_MAGIC {
        return Err(io::Error::other("/proc is no procfs"));
    }
    Ok(file)
}

/// Writes all of a text at once into a file of `/proc`.
pub(crate) fn write(path: impl AsRef<Path>, text: &str) -> io::Result<()> {
    let file = open(path, OFlags::WRONLY)?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

/// Sets a kernel parameter, by its name with dots or slashes, in the namespaces of this process.
pub(crate) fn set_parameter(name: &str, value: &str) -> Result<(), Failure> {
    let path = if name.contains('/') {
        name.to_owned()
    } else {
        name.replace('.', "/")
    };
    write(Path::new("sys").join(path), value)
        .step(|| format!("cannot set the kernel parameter {name} to {value:?}"))
}

/// The file through which a label is set for the program that is executed next.
#[derive(Debug)]
pub(crate) struct ExecLabel {
    file: OwnedFd,
    text: String,
}

impl ExecLabel {
    /// For an AppArmor profile or an SELinux label, whichever is there.
    pub(crate) fn open(apparmor: &str, selinux: &str) -> Result<Vec<Self>, Failure> {
        let mut labels = Vec::new();
        if !apparmor.is_empty() {
            let own = open("thread-self/attr/apparmor/exec", OFlags::WRONLY);
            // Kernels before 5.8 have one file for all security modules.
            let file = own
                .or_else(|_| open("thread-self/attr/exec", OFlags::WRONLY))
                .step(|| format!("cannot use the AppArmor profile {apparmor:?}"))?;
            let text = format!("exec {apparmor}");
            labels.push(Self { file, text });
        }
        if !selinux.is_empty() {
            let file = open("thread-self/attr/exec", OFlags::WRONLY)
                .step(|| format!("cannot use the SELinux label {selinux:?}"))?;
            let text = selinux.to_owned();
            labels.push(Self { file, text });
        }
        Ok(labels)
    }

    /// Sets it.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        rustix::io::write(&self.file, self.text.as_bytes())
            .map(drop)
            .step(|| format!("cannot set the security label {:?}", self.text))
    }
}
