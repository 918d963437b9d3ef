//! Kernel settings of the network namespace that this thread is in.

use std::{fs, io, path::PathBuf};

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
