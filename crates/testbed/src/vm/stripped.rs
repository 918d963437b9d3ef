//! Programs without their symbols, kept from one guest to the next: it takes seconds to remove them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::stdout_of;
use crate::target_dir;

/// A copy of a program without symbols.
pub(super) fn of(program: &Path) -> Result<PathBuf> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let metadata =
        std::fs::metadata(program).with_context(|| format!("cannot find {}", program.display()))?;
    let prefix = format!("{name}@");
    let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    let version = format!("{prefix}{}-{seconds}.{nanoseconds}", metadata.len());
    let dir = target_dir::cache()?.join("stripped");
    std::fs::create_dir_all(&dir)?;
    let copy = dir.join(&version);
    if copy.exists() {
        return Ok(copy);
    }
    let work = tempfile::Builder::new().prefix("work-").tempdir_in(&dir)?;
    let made = work.path().join("program");
    stdout_of(Command::new("strip").arg("-o").arg(&made).arg(program))?;
    for entry in std::fs::read_dir(&dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(&prefix) && *name != *version {
            // Another test may have removed it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
    // The rename comes last, so that a copy is always complete.
    std::fs::rename(&made, &copy)?;
    Ok(copy)
}
