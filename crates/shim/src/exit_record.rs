//! How a container ended, kept in `exit.json` of its bundle. The room for it is taken when the
//! container is made, so that a disk that is full at the end can't lose it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

/// Name of the record in the bundle.
const NAME: &str = "exit.json";

/// Name of the file that becomes the record.
const RESERVED: &str = "exit.json.reserved";

/// Bytes that are reserved; the longest record has less than 200.
const ROOM: usize = 512;

/// How a container's init ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitRecord {
    /// Exit status, or 128 plus the number of the signal, as shells and the CRI count.
    pub exit_code: i32,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// When the program was started, in nanoseconds since 1970; 0 if it never was.
    pub started_at_ns: u64,
    /// Whether the kernel killed a process of the container for want of memory.
    pub oom_killed: bool,
}

/// Takes the room for a record.
pub(crate) fn reserve(bundle: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(bundle.join(RESERVED))?;
    file.write_all(&[b' '; ROOM])?;
    file.sync_all()
}

/// Writes the record; it is whole or missing whatever happens meanwhile.
pub(crate) fn write(bundle: &Path, record: &ExitRecord) -> io::Result<()> {
    let mut text = serde_json::to_vec(record)?;
    // Spaces behind the value are still JSON, and keep the blocks that are reserved.
    text.resize(text.len().max(ROOM), b' ');
    let reserved = bundle.join(RESERVED);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&reserved)?;
    file.write_all_at(&text, 0)?;
    file.sync_all()?;
    fs::rename(&reserved, bundle.join(NAME))?;
    File::open(bundle)?.sync_all()
}

/// The record of a bundle; `None` if the container has not ended, or nobody was there to see it.
///
/// # Errors
/// The file can't be read, or is none that a shim has written.
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
    fn a_record_is_kept_although_the_disk_is_full() {
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
    fn a_record_that_was_cut_is_an_error_and_no_exit() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NAME), "{\"exit_code\":1").unwrap();
        assert!(read(dir.path()).is_err());
    }
}
