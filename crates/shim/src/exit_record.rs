//! The exit record of a container, `exit.json` in its bundle. Its blocks are reserved when the
//! container is created, so that a full disk can't lose it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};
use serde::{Deserialize, Serialize};

/// Name of the record in the bundle.
const NAME: &str = "exit.json";

/// Name of the reserved file, which is renamed to the record.
const RESERVED: &str = "exit.json.reserved";

/// Bytes to reserve; the longest record has fewer than 200.
const ROOM: usize = 512;

/// The exit of a container's init.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitRecord {
    /// Exit status, or 128 plus the signal number, as in shells and the CRI.
    pub exit_code: i32,
    /// The signal that killed it, if any.
    pub signal: Option<i32>,
    /// Time of the exit, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Start time of the program, in nanoseconds since 1970; 0 if it was never started.
    pub started_at_ns: u64,
    /// The OOM killer killed a process of the container.
    pub oom_killed: bool,
}

/// Reserves the blocks for a record.
pub(crate) fn reserve(bundle: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(bundle.join(RESERVED))?;
    match fallocate(&file, FallocateFlags::empty(), 0, ROOM as u64) {
        // Not every file system supports fallocate(2); written bytes are the next best reservation.
        Err(Errno::OPNOTSUPP) => file.write_all(&[b' '; ROOM]),
        done => done.map_err(io::Error::from),
    }
}

/// Writes the record atomically: a reader sees either all of it or none. It survives the exit of
/// the shim and the agent; to survive a power failure, the returned files must be flushed.
pub(crate) fn write(bundle: &Path, record: &ExitRecord) -> io::Result<[File; 2]> {
    let mut text = serde_json::to_vec(record)?;
    // Trailing spaces are valid JSON, and keep the reserved blocks.
    text.resize(text.len().max(ROOM), b' ');
    let reserved = bundle.join(RESERVED);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&reserved)?;
    file.write_all_at(&text, 0)?;
    fs::rename(&reserved, bundle.join(NAME))?;
    Ok([file, File::open(bundle)?])
}

/// Reads the record of a bundle; `None` if the container has not exited, or no shim saw its exit.
///
/// # Errors
/// The file can't be read or parsed.
pub fn read(bundle: &Path) -> io::Result<Option<ExitRecord>> {
    match fs::read(bundle.join(NAME)) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_record_is_written_to_a_full_disk() {
        let disk = crate::supervisor::test_mount::Tmpfs::new("exit-full", 64 << 10);
        reserve(disk.path()).unwrap();
        assert_eq!(read(disk.path()).unwrap(), None);
        let mut filler = File::create(disk.path().join("filler")).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
        let record = ExitRecord {
            exit_code: 137,
            signal: Some(9),
            at_ns: u64::MAX,
            started_at_ns: u64::MAX,
            oom_killed: true,
        };
        write(disk.path(), &record).unwrap();
        assert_eq!(read(disk.path()).unwrap(), Some(record));
    }

    #[test]
    fn a_truncated_exit_record_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NAME), "{\"exit_code\":1").unwrap();
        assert!(read(dir.path()).is_err());
    }
}
