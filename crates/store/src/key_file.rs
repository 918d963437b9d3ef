//! Key files for records: strictly checked, safely created.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use aws_lc_rs::rand;
use rustix::{
    fs::{CWD, OFlags, RenameFlags, renameat_with},
    process::geteuid,
};

use crate::SealKey;

/// A key can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file does not exist.
    #[error("key file {} not found", .0.display())]
    Missing(PathBuf),
    /// Other users could read or replace the file, or it is not a key.
    #[error("the key file {} {why}", path.display())]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// What is wrong, as the end of a sentence.
        why: String,
    },
    /// The file can't be read or created.
    #[error("cannot {step} the key file {}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The failed operation.
        step: &'static str,
        /// The error.
        source: io::Error,
    },
}

impl SealKey {
    /// Reads a key: a regular file of [`Self::LEN`] bytes that belongs to the user of this process
    /// and has no permissions for other users.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let disk = |source| KeyError::Disk {
            path: path.to_owned(),
            step: "read",
            source,
        };
        let bad = |why: String| KeyError::Unsafe {
            path: path.to_owned(),
            why,
        };
        // A symbolic link would bypass the checks of the directory; a FIFO would block.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(KeyError::Missing(path.to_owned()));
            }
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Err(bad("is a symbolic link".to_owned()));
            }
            Err(error) => return Err(disk(error)),
        };
        let found = file.metadata().map_err(disk)?;
        if !found.is_file() {
            return Err(bad("is not a regular file".to_owned()));
        }
        let user = geteuid().as_raw();
        if found.uid() != user {
            let owner = found.uid();
            return Err(bad(format!("belongs to user {owner}, not to user {user}")));
        }
        let mode = found.mode() & 0o7777;
        if mode & 0o077 != 0 {
            let why = format!("has mode {mode:04o}, so that others can use it; make it 0600");
            return Err(bad(why));
        }
        let mut bytes = Vec::with_capacity(Self::LEN + 1);
        let limit = Self::LEN as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).map_err(disk)?;
        let key = <&[u8; Self::LEN]>::try_from(bytes.as_slice());
        let key = key.map_err(|_| bad(format!("does not have {} bytes", Self::LEN)))?;
        Self::new(key).map_err(|_| disk(io::Error::other("the key cannot be set up")))
    }

    /// Reads a key, or creates a random one if there is no file. The second value is true if the
    /// key is new. When this returns, the key survives a power loss.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn read_or_create(path: &Path) -> Result<(Self, bool), KeyError> {
        match Self::read(path) {
            Err(KeyError::Missing(_)) => {}
            read => return read.map(|key| (key, false)),
        }
        let is_new = create(path).map_err(|(step, source)| KeyError::Disk {
            path: path.to_owned(),
            step,
            source,
        })?;
        Ok((Self::read(path)?, is_new))
    }
}

/// Creates the file with a random key atomically, so that a crash leaves no partial key. `false` if
/// another process was faster: its key is used.
fn create(path: &Path) -> Result<bool, (&'static str, io::Error)> {
    let make = |source| ("make", source);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.map_err(|source| ("make the directory of", source))?;
    let mut bytes = [0; SealKey::LEN];
    let mut unique = [0; 8];
    rand::fill(&mut bytes)
        .and_then(|()| rand::fill(&mut unique))
        .map_err(|_| make(io::Error::other("the system has no random numbers")))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unique = u64::from_ne_bytes(unique);
    let temporary = directory.join(format!(".{name}.{unique:016x}.tmp"));
    let written = write(&temporary, &bytes).and_then(|()| {
        let renamed = renameat_with(CWD, &temporary, CWD, path, RenameFlags::NOREPLACE);
        renamed.map_err(io::Error::from)
    });
    match written {
        Ok(()) => {
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(|source| ("flush the directory of", source))?;
            Ok(true)
        }
        Err(error) => {
            // A leftover is harmless: it holds a key that is never used.
            let _ = fs::remove_file(&temporary);
            match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(false),
                _ => Err(make(error)),
            }
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
