//! Free space of file systems.

use std::path::Path;

use anyhow::{Context, Result};

/// Bytes that are free for this user on the file system of `path`.
///
/// # Errors
/// When the path can't be inspected.
pub fn free(path: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(path)
        .with_context(|| format!("cannot inspect the file system of {}", path.display()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
