//! One runtime per root: a second one would reap, kill and remove what the first one runs.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

/// Held for as long as this runtime may act on its root; the kernel lets go of it with the process.
#[derive(Debug)]
pub(crate) struct Ownership {
    _file: File,
}

/// Why the root can't be had.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// Another runtime has it.
    #[error("another runtime (process {holder}) uses {}: stop it, or choose another root folder", root.display())]
    Taken {
        /// The root.
        root: PathBuf,
        /// Its process, as far as known.
        holder: String,
    },
    /// The lock file can't be used.
    #[error("cannot lock {}", file.display())]
    File {
        /// The lock file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Takes the root.
pub(crate) fn take(root: &Path, lock: &Path) -> Result<Ownership, OwnershipError> {
    let failed = |source| OwnershipError::File {
        file: lock.to_owned(),
        source,
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(lock)
        .map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            // Only for the message.
            let _ = file.read_to_string(&mut holder);
            return Err(OwnershipError::Taken {
                root: root.to_owned(),
                holder: holder.trim().to_owned(),
            });
        }
        Err(error) => return Err(failed(error.into())),
    }
    let told = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = told {
        // A full disk must not keep the runtime from its own containers.
        tracing::debug!(%error, "the lock file does not tell whose it is");
    }
    Ok(Ownership { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_runtime_is_refused_and_told_who_the_first_is() {
        let dir = tempfile::Builder::new()
            .prefix("rubelet-t")
            .tempdir()
            .unwrap();
        let lock = dir.path().join("lock");
        let first = take(dir.path(), &lock).unwrap();
        let error = take(dir.path(), &lock).unwrap_err().to_string();
        assert!(
            error.contains(&format!("(process {})", std::process::id())),
            "{error}"
        );
        drop(first);
        take(dir.path(), &lock).unwrap();
    }
}
