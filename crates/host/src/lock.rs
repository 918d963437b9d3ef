//! One process for one directory: a lock file that names its holder.
//!
//! The lock is flock(2)'s. A child between fork and exec still has its parent's descriptors: if the
//! parent is killed at that moment, the lock outlives it until the child execs its program. A held
//! lock is therefore retried for [`PATIENCE`] before it counts as held.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Time to wait for a held lock.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// Held until it is dropped, or the process dies.
#[derive(Debug)]
pub struct FileLock {
    _held: File,
}

/// Why a lock can't be acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("process {holder} has it")]
    Taken {
        /// Its PID as it wrote it; `unknown` if it could not.
        holder: String,
    },
    /// The file can't be opened or locked.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// Acquires the lock of `path`, a file that is created if it is missing, and then stays.
///
/// # Errors
/// Another process still has it after [`PATIENCE`], or the file can't be used.
pub fn take(path: &Path) -> Result<FileLock, LockError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(held(file)),
        Err(Errno::WOULDBLOCK) => wait(file),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

fn wait(mut file: File) -> Result<FileLock, LockError> {
    let (done, waited) = mpsc::sync_channel(1);
    let waiting = file.try_clone()?;
    // flock(2) has no timeout. A thread that still waits ends with the process, or releases the
    // lock if it gets it too late.
    thread::Builder::new()
        .name("file lock".to_owned())
        .spawn(move || {
            let locked = retrying(&waiting);
            if done.send(locked).is_err() {
                let _ = flock(&waiting, FlockOperation::Unlock);
            }
        })?;
    match waited.recv_timeout(PATIENCE) {
        Ok(Ok(())) => Ok(held(file)),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => {
            let mut holder = String::new();
            // Only used in the message.
            let _ = file.read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => "unknown".to_owned(),
                holder => holder.to_owned(),
            };
            Err(LockError::Taken { holder })
        }
    }
}

fn retrying(file: &File) -> io::Result<()> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}

fn held(mut file: File) -> FileLock {
    // Only used in other processes' messages: a full disk must not keep a process from its own
    // lock.
    let _ = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    FileLock { _held: file }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> tempfile::TempDir {
        tempfile::Builder::new()
            .prefix("rbt-host-")
            .tempdir()
            .unwrap()
    }

    #[test]
    fn a_second_holder_is_refused_and_told_who_the_first_is() {
        let dir = scratch();
        let path = dir.path().join("lock");
        let first = take(&path).unwrap();
        let error = take(&path).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("process {} has it", std::process::id())
        );
        drop(first);
        take(&path).unwrap();
    }

    #[test]
    fn a_lock_that_is_given_back_soon_is_waited_for() {
        let dir = scratch();
        let path = dir.path().join("lock");
        let first = take(&path).unwrap();
        let second = {
            let path = path.clone();
            thread::spawn(move || take(&path).map(drop))
        };
        drop(first);
        second.join().unwrap().unwrap();
    }
}
