//! Files of the host's `/proc`, with checks that they are on a procfs.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs, openat, openat2};

use crate::step::{Step, StepError};

/// Opens a file of `/proc`. Must be called before pivot_root: a container could have mounted
/// anything over its `/proc` (CVE-2019-16884, CVE-2025-52881).
pub(crate) fn open(path: impl AsRef<Path>, flags: OFlags) -> io::Result<OwnedFd> {
    let dir = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = openat(CWD, "/proc", dir, Mode::empty())?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = openat2(&proc, path.as_ref(), flags, Mode::empty(), resolve)?;
    if fstatfs(&file)?.f_type != PROC_SUPER_MAGIC {
        return Err(io::Error::other("/proc is not a procfs"));
    }
    Ok(file)
}

/// Writes a text to a file of `/proc` in one write.
pub(crate) fn write(path: impl AsRef<Path>, text: &str) -> io::Result<()> {
    let file = open(path, OFlags::WRONLY)?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

/// Sets a kernel parameter, by its name with dots or slashes, in the namespaces of this process.
pub(crate) fn set_parameter(name: &str, value: &str) -> Result<(), StepError> {
    let what = || format!("cannot set the kernel parameter {name} to {value:?}");
    let path = parameter(name).ok_or_else(|| StepError(format!("{}: invalid name", what())))?;
    write(Path::new("sys").join(path), value).step(what)
}

/// The path of a parameter below `/proc/sys`. As in sysctl(8), the first of `.` and `/` is the
/// separator, and the other one is a dot within a name, such as that of an interface. `None` for a
/// name that would leave `/proc/sys`.
fn parameter(name: &str) -> Option<String> {
    let path = match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'.' => name
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                c => c,
            })
            .collect(),
        _ => name.to_owned(),
    };
    let leads_elsewhere = |part: &str| matches!(part, "" | "." | "..");
    (!path.split('/').any(leads_elsewhere)).then_some(path)
}

/// The file that sets a label for the next execve(2).
#[derive(Debug)]
pub(crate) struct ExecLabel {
    file: OwnedFd,
    text: String,
}

impl ExecLabel {
    /// Opens the files for an AppArmor profile and an SELinux label, as far as they are set.
    pub(crate) fn open(apparmor: &str, selinux: &str) -> Result<Vec<Self>, StepError> {
        let mut labels = Vec::new();
        if !apparmor.is_empty() {
            let own = open("thread-self/attr/apparmor/exec", OFlags::WRONLY);
            // Kernels before 5.8 have one file for all security modules, `attr/exec`.
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
    pub(crate) fn apply(&self) -> Result<(), StepError> {
        rustix::io::write(&self.file, self.text.as_bytes())
            .map(drop)
            .step(|| format!("cannot set the security label {:?}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_below_proc_sys_by_either_separator() {
        for (name, path) in [
            ("net.core.somaxconn", Some("net/core/somaxconn")),
            ("net/core/somaxconn", Some("net/core/somaxconn")),
            (
                "net.ipv4.conf.eth0/1.forwarding",
                Some("net/ipv4/conf/eth0.1/forwarding"),
            ),
            (
                "net/ipv4/conf/eth0.1/forwarding",
                Some("net/ipv4/conf/eth0.1/forwarding"),
            ),
            // The ways out that a swap of separators opens.
            ("net.//.kernel.core_pattern", None),
            ("net/../kernel/core_pattern", None),
            ("net./.kernel", None),
            ("net..kernel", None),
            ("/kernel/core_pattern", None),
            (".kernel", None),
            ("", None),
        ] {
            assert_eq!(parameter(name).as_deref(), path, "{name}");
        }
    }
}
