//! Network sysctls in the network namespace of this thread.

use std::{fs, io, os::fd::OwnedFd, path::PathBuf};

use rubelet_host::nft::Family;
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

/// A kernel parameter that has another value and can't be set.
#[derive(Debug, thiserror::Error)]
#[error("cannot set the kernel parameter net/{name} to {value}")]
pub struct SysctlError {
    name: String,
    value: String,
    source: io::Error,
}

/// The sysctls of interfaces in one network namespace.
///
/// The kernel's lookup of `/proc/sys/net/ipv4` searches those of all namespaces: with a thousand
/// pods each path costs 0.1 ms. So each directory is opened once.
#[derive(Debug)]
pub(super) struct Interfaces([Option<OwnedFd>; 2]);

impl Interfaces {
    /// The sysctls of this thread's network namespace.
    pub(super) fn open() -> Self {
        let open = |protocol: &str| {
            let path = format!("/proc/sys/net/{protocol}/conf");
            openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        Self([open("ipv4"), open("ipv6")])
    }

    /// Sets a value if it differs. Does nothing for an interface without the family.
    ///
    /// # Errors
    /// It has another value and can't be set.
    pub(super) fn set(
        &self,
        family: Family,
        interface: &str,
        key: &str,
        value: &str,
    ) -> Result<(), SysctlError> {
        let (name, dir) = match family {
            Family::V4 => ("ipv4", &self.0[0]),
            Family::V6 => ("ipv6", &self.0[1]),
        };
        let Some(dir) = dir else {
            return Ok(());
        };
        let open = |flags| openat(dir, format!("{interface}/{key}"), flags, Mode::empty());
        let done = match open(OFlags::RDWR | OFlags::CLOEXEC) {
            Ok(file) => exchange(&file, value),
            Err(Errno::NOENT) => return Ok(()),
            // A read-only value may already be the right one.
            Err(why) => open(OFlags::RDONLY | OFlags::CLOEXEC)
                .and_then(|file| is(&file, value))
                .and_then(|same| if same { Ok(()) } else { Err(why) }),
        };
        done.map_err(|errno| SysctlError {
            name: format!("{name}/conf/{interface}/{key}"),
            value: value.to_owned(),
            source: errno.into(),
        })
    }
}

fn is(file: &OwnedFd, value: &str) -> Result<bool, Errno> {
    let mut bytes = [0; 64];
    let (now, _) = rustix::io::read(file, &mut bytes[..]).map(|length| bytes.split_at(length))?;
    Ok(now.trim_ascii() == value.as_bytes())
}

fn exchange(file: &OwnedFd, value: &str) -> Result<(), Errno> {
    if is(file, value)? {
        return Ok(());
    }
    // A sysctl takes the whole value in one write at offset 0.
    rustix::io::pwrite(file, value.as_bytes(), 0).map(drop)
}

/// Sets a value below `/proc/sys/net` if it differs.
pub(super) fn set(name: &str, value: &str) -> Result<(), SysctlError> {
    let path = PathBuf::from("/proc/sys/net").join(name);
    let failed = |source: io::Error| SysctlError {
        name: name.to_owned(),
        value: value.to_owned(),
        source,
    };
    let now = fs::read_to_string(&path).map_err(failed)?;
    if now.trim() == value {
        return Ok(());
    }
    fs::write(&path, value).map_err(failed)
}

/// A value below `/proc/sys/net`.
pub(super) fn get(name: &str) -> Option<String> {
    let text = fs::read_to_string(PathBuf::from("/proc/sys/net").join(name)).ok()?;
    Some(text.trim().to_owned())
}

/// The entries of a directory below `/proc/sys/net`.
pub(super) fn list(name: &str) -> Vec<String> {
    let entries = fs::read_dir(PathBuf::from("/proc/sys/net").join(name));
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Whether this kernel supports IPv6.
pub(super) fn has_ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}
