//! Kernel settings of the network namespace that this thread is in.

use std::{fs, io, os::fd::OwnedFd, path::PathBuf};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

/// A protocol that interfaces have settings of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    V4,
    V6,
}

/// The settings of interfaces of one network namespace.
///
/// The kernel finds `/proc/sys/net/ipv4` by going through those of all namespaces, so with a thousand
/// pods each path costs a tenth of a millisecond. Here it is done once for each protocol.
#[derive(Debug)]
pub(super) struct Interfaces([Option<OwnedFd>; 2]);

impl Interfaces {
    /// Those of the network namespace that this thread is in.
    pub(super) fn open() -> Self {
        let open = |protocol: &str| {
            let path = format!("/proc/sys/net/{protocol}/conf");
            openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        Self([open("ipv4"), open("ipv6")])
    }

    /// Sets a value, unless it is that already. An interface that doesn't have the protocol at all
    /// needs nothing.
    ///
    /// # Errors
    /// It is another one and can't be set; a sentence.
    pub(super) fn set(
        &self,
        protocol: Protocol,
        interface: &str,
        key: &str,
        value: &str,
    ) -> Result<(), String> {
        let (name, dir) = match protocol {
            Protocol::V4 => ("ipv4", &self.0[0]),
            Protocol::V6 => ("ipv6", &self.0[1]),
        };
        let Some(dir) = dir else {
            return Ok(());
        };
        let open = |flags| openat(dir, format!("{interface}/{key}"), flags, Mode::empty());
        let done = match open(OFlags::RDWR | OFlags::CLOEXEC) {
            Ok(file) => exchange(&file, value),
            Err(Errno::NOENT) => return Ok(()),
            // What can't be written may be as wanted.
            Err(why) => open(OFlags::RDONLY | OFlags::CLOEXEC)
                .and_then(|file| is(&file, value))
                .and_then(|same| if same { Ok(()) } else { Err(why) }),
        };
        done.map_err(|errno| {
            let error = io::Error::from(errno);
            format!("net/{name}/conf/{interface}/{key} is not {value} and cannot be set ({error})")
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
    // Values are written as a whole, from the beginning.
    rustix::io::pwrite(file, value.as_bytes(), 0).map(drop)
}

/// Sets a value below `/proc/sys/net`, unless it is that already.
pub(super) fn set(name: &str, value: &str) -> Result<(), String> {
    let path = PathBuf::from("/proc/sys/net").join(name);
    let failed =
        |error: io::Error| format!("net/{name} is not {value} and cannot be set ({error})",);
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

/// The names of a folder below `/proc/sys/net`.
pub(super) fn list(name: &str) -> Vec<String> {
    let entries = fs::read_dir(PathBuf::from("/proc/sys/net").join(name));
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Whether this kernel knows IPv6 at all.
pub(super) fn has_ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}
