//! Replaces files without waiting for the disk, and keeps a backup for a power failure.
//!
//! A rename over a file waits for the disk: ext4 then flushes the renamed file at once, for
//! programs that forget to. An exchange of two files does not wait. The old content is kept beside
//! the file until the new content is flushed, and replaces it if it is lost.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{
    files::{remove, report},
    write_behind::FlushQueue,
};

static QUEUE: FlushQueue = FlushQueue::new(on_flushed, remove_obsolete);

/// Never held during disk I/O, so that no file waits for another. Lock order: this lock before that
/// of the flush queue.
static FILES: Mutex<BackupState> = Mutex::new(BackupState {
    unflushed: BTreeSet::new(),
    claimed: BTreeSet::new(),
});

/// Notified when a file is no longer claimed.
static RELEASED: Condvar = Condvar::new();

struct BackupState {
    /// Files whose current content may not be on the disk, so that their backup must stay.
    unflushed: BTreeSet<PathBuf>,
    /// Files that are being exchanged, or whose backup is being removed.
    claimed: BTreeSet<PathBuf>,
}

impl BackupState {
    /// Notes that a file was flushed, unless it was replaced `again`. True if its backup is
    /// obsolete: the next backup is this content.
    fn on_flushed(&mut self, path: &Path, again: bool) -> bool {
        !again && !self.claimed.contains(path) && self.unflushed.remove(path)
    }
}

fn files() -> MutexGuard<'static, BackupState> {
    // A poisoned lock is usable: each change is atomic.
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Claims a file; waits while the flush thread removes its backup.
fn claim(path: &Path) -> MutexGuard<'static, BackupState> {
    let mut files = files();
    while !files.claimed.insert(path.to_owned()) {
        files = RELEASED.wait(files).unwrap_or_else(PoisonError::into_inner);
    }
    files
}

fn release(mut files: MutexGuard<'static, BackupState>, path: &Path) {
    files.claimed.remove(path);
    RELEASED.notify_all();
}

/// The path of a file's backup: its last content that is certainly on the disk.
pub(crate) fn kept(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".kept");
    path.with_file_name(name)
}

/// Replaces a file's content by that of a temporary file, and queues its flush.
pub(crate) fn put_in_place(path: &Path, temporary: &Path) -> io::Result<()> {
    let older_is_kept = !claim(path).unflushed.insert(path.to_owned());
    let placed = place(path, temporary, older_is_kept);
    let mut files = files();
    match &placed {
        // Before others may claim it: a flush that began earlier is of the previous content.
        Ok(()) => QUEUE.flush_later(path),
        Err(_) if older_is_kept => {}
        Err(_) => drop(files.unflushed.remove(path)),
    }
    release(files, path);
    placed
}

/// Exchanges a file with a temporary one, and keeps the old content as backup, unless an older
/// backup exists and the old content may not be on the disk.
fn place(path: &Path, temporary: &Path, older_is_kept: bool) -> io::Result<()> {
    let done = match (exchange(temporary, path)?, older_is_kept) {
        (true, false) => fs::rename(temporary, kept(path)),
        (true, true) => remove(temporary),
        (false, _) => Ok(()),
    };
    report(path, done);
    Ok(())
}

/// Notes that a file with a backup may not be on the disk: the process that wrote it died before
/// the flush.
pub(crate) fn flush_interrupted(path: &Path) {
    let mut files = files();
    // Unless this process wrote and flushed it, and its backup waits for its removal.
    if !files.claimed.contains(path) && !QUEUE.is_obsolete(path) {
        files.unflushed.insert(path.to_owned());
        QUEUE.flush_later(path);
    }
}

/// Queues the flush of a file that was written, renamed or removed, and of its directory. Never
/// blocks.
pub(crate) fn flush_later(path: &Path) {
    QUEUE.flush_later(path);
}

/// Waits until all queued files are flushed or failed, and obsolete backups are removed.
pub fn wait_for_flush() {
    QUEUE.wait_for_flush();
}

/// Notes that the queue flushed a file. True if its backup is obsolete.
fn on_flushed(path: &Path) -> bool {
    let mut files = files();
    let again = QUEUE.is_queued(path);
    files.on_flushed(path, again)
}

/// Removes a backup that [`on_flushed`] reported as obsolete, unless it is needed again.
fn remove_obsolete(path: &Path) {
    let claimed = claim(path);
    let needed = claimed.unflushed.contains(path);
    drop(claimed);
    if !needed {
        report(path, remove(&kept(path)));
    }
    release(files(), path);
}

/// Removes the backup of a file that will be removed, or that its writer has flushed.
pub(crate) fn forget(path: &Path) -> io::Result<()> {
    files().unflushed.remove(path);
    remove(&kept(path))
}

/// Exchanges two files. False if the second one does not exist or the file system does not support
/// it; then the first is renamed.
fn exchange(first: &Path, second: &Path) -> io::Result<bool> {
    // A directory could be exchanged too.
    if fs::symlink_metadata(second).is_ok_and(|found| found.is_file()) {
        match renameat_with(CWD, first, CWD, second, RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(true),
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    fs::rename(first, second).map(|()| false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_disk_is_kept_until_something_newer_is() {
        let dir = tempfile::tempdir().unwrap();
        let (file, temporary) = (dir.path().join("file"), dir.path().join("temporary"));
        let mut files = BackupState {
            unflushed: BTreeSet::new(),
            claimed: BTreeSet::new(),
        };
        let put = |files: &mut BackupState, text: &str| {
            fs::write(&temporary, text).unwrap();
            let older_is_kept = !files.unflushed.insert(file.clone());
            place(&file, &temporary, older_is_kept).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert!(!temporary.exists());
            fs::read_to_string(kept(&file)).ok()
        };
        // Nothing of it is on the disk.
        assert_eq!(put(&mut files, "zero"), None);
        assert_eq!(put(&mut files, "one"), None);
        assert!(files.on_flushed(&file, false));
        assert_eq!(put(&mut files, "two").as_deref(), Some("one"));
        assert_eq!(put(&mut files, "three").as_deref(), Some("one"));
        // It was flushed, and is written again at once.
        assert!(!files.on_flushed(&file, true));
        files.claimed.insert(file.clone());
        assert!(!files.on_flushed(&file, false));
        files.claimed.remove(&file);
        assert!(files.on_flushed(&file, false));
        assert!(!files.on_flushed(&file, false));
        // What was kept is replaced.
        assert_eq!(put(&mut files, "four").as_deref(), Some("three"));
    }

    #[test]
    fn what_is_needed_again_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(kept(&file), "before").unwrap();
        files().unflushed.insert(file.clone());
        remove_obsolete(&file);
        assert!(kept(&file).exists());
        assert!(on_flushed(&file));
        remove_obsolete(&file);
        assert!(!kept(&file).exists());
        assert!(!files().claimed.contains(&file));
    }

    #[test]
    fn a_file_that_is_loaded_soon_after_its_flush_counts_as_flushed() {
        let dir = tempfile::tempdir().unwrap();
        let [file, temporary] = ["file", "temporary"].map(|name| dir.path().join(name));
        fs::write(&file, "flushed").unwrap();
        fs::write(kept(&file), "older").unwrap();
        QUEUE.add_obsolete(&file);
        flush_interrupted(&file);
        fs::write(&temporary, "new").unwrap();
        put_in_place(&file, &temporary).unwrap();
        // Unless it is removed already, as "new" is flushed.
        if let Ok(text) = fs::read_to_string(kept(&file)) {
            assert_eq!(text, "flushed");
        }
    }
}
