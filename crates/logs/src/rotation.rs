//! Rotation of a log, as the kubelet does it: the current file is renamed to
//! `ATTEMPT.log.YYYYMMDD-HHMMSS`, the runtime opens a new one, all but the newest rotated file are
//! compressed, and the oldest ones are removed. Calls block.
//!
//! Everything happens below the directory of the log, by descriptor: a container may be able to
//! write there. A crash at any moment loses no line, and the next rotation completes an interrupted
//! one.

mod compress;
mod plan;

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::Path,
};

use jiff::Timestamp;

use crate::place::LogPlace;

/// The limits of log size and file count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotationPolicy {
    /// `containerLogMaxSize` in bytes: a log of this size is rotated.
    pub max_bytes: u64,
    /// `containerLogMaxFiles`: files of one log, the current one included; at least 2.
    pub max_files: usize,
}

/// The size of the current file of a log in bytes; `None` if it does not exist.
///
/// # Errors
/// The directory can't be read, or the log is not a regular file.
pub fn size(log: &Path) -> io::Result<Option<u64>> {
    match fs::symlink_metadata(log) {
        Ok(meta) if meta.is_file() => Ok(Some(meta.len())),
        Ok(_) => Err(io::Error::other("not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A log whose current file was renamed. The runtime keeps writing to that file until the
/// `ReopenContainerLog` call.
#[derive(Debug)]
pub struct RotatedLog {
    place: LogPlace,
    rotated: OsString,
}

impl RotatedLog {
    /// Renames the current file of a log to a name that is newer than those of all rotated files.
    ///
    /// # Errors
    /// The log does not exist, or can't be renamed.
    pub fn rename(log: &Path, now: Timestamp) -> io::Result<Self> {
        let place = LogPlace::open(log)?;
        let suffix = plan::next_suffix(&name(&place)?, &place.files()?, now);
        let rotated = place.with_suffix(&suffix);
        place.move_to(&rotated)?;
        Ok(Self { place, rotated })
    }

    /// Restores the name, because the runtime did not open a new file.
    pub fn undo(&self) {
        self.place.move_back(&self.rotated);
    }
}

/// Removes the oldest files of a log beyond `policy.max_files`, and leftovers of a crash. Returns
/// true if rotated files must be compressed with [`compress`].
///
/// # Errors
/// The directory can't be read, or a file can't be removed.
pub fn remove_excess(log: &Path, policy: RotationPolicy) -> io::Result<bool> {
    let place = LogPlace::open(log)?;
    let kept = policy.max_files.saturating_sub(1);
    let plan = plan::plan_rotation(&name(&place)?, &place.files()?, kept);
    for file in &plan.remove {
        place.remove(OsStr::new(file))?;
    }
    Ok(!plan.compress.is_empty())
}

/// Compresses all rotated files of a log but the newest, which the runtime and readers may still
/// use.
///
/// # Errors
/// The directory can't be read, or a file can't be compressed, such as when the disk is full. The
/// uncompressed file is kept then.
pub fn compress(log: &Path) -> io::Result<()> {
    let place = LogPlace::open(log)?;
    let plan = plan::plan_rotation(&name(&place)?, &place.files()?, usize::MAX);
    for file in &plan.compress {
        compress::compress(&place, file)?;
    }
    Ok(())
}

fn name(place: &LogPlace) -> io::Result<String> {
    let name = place.name().to_str().map(str::to_owned);
    name.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests;
