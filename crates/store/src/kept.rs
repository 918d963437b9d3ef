//! Replaces files without a wait for the disk, and keeps what a power cut must not take.
//!
//! A rename over a file is such a wait: ext4 then writes what is renamed at once, so that programs which
//! forget to flush do not lose both. An exchange of the two is none. What the file had before is kept
//! beside it until its new content is flushed, and stands in for it if that is lost.

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
    replace::remove,
    write_behind::{flush_later, is_queued, report},
};

/// Never locked over a call to the disk, so that no file waits for another. The queue of flushes has
/// a lock of its own, which comes second.
static FILES: Mutex<Files> = Mutex::new(Files {
    unflushed: BTreeSet::new(),
    claimed: BTreeSet::new(),
});

/// Notified when a file is no longer claimed.
static RELEASED: Condvar = Condvar::new();

struct Files {
    /// Those whose present content may not be on the disk, so that what is kept of them must stay.
    unflushed: BTreeSet<PathBuf>,
    /// Those that change places at present, or of which something kept is being removed.
    claimed: BTreeSet<PathBuf>,
}

impl Files {
    /// Notes that a file was flushed, unless it is replaced `again`. Whether what is kept of it is
    /// needless: the next content to keep is this one.
    fn on_flushed(&mut self, path: &Path, again: bool) -> bool {
        !again && !self.claimed.contains(path) && self.unflushed.remove(path)
    }
}

fn files() -> MutexGuard<'static, Files> {
    // Each change is complete.
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Claims a file; waits while the thread that flushes removes what was kept of it.
fn claim(path: &Path) -> MutexGuard<'static, Files> {
    let mut files = files();
    while !files.claimed.insert(path.to_owned()) {
        files = RELEASED.wait(files).unwrap_or_else(PoisonError::into_inner);
    }
    files
}

fn release(mut files: MutexGuard<'static, Files>, path: &Path) {
    files.claimed.remove(path);
    RELEASED.notify_all();
}

/// The last content of a file that is on the disk for certain, while its present one may not be.
pub(crate) fn kept(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".kept");
    path.with_file_name(name)
}

/// Gives a file the content of a temporary one, and has it flushed later.
pub(crate) fn put_in_place(path: &Path, temporary: &Path) -> io::Result<()> {
    let older_is_kept = !claim(path).unflushed.insert(path.to_owned());
    let placed = place(path, temporary, older_is_kept);
    let mut files = files();
    match &placed {
        // Before others may claim it: a flush that began earlier is of the content before.
        Ok(()) => flush_later(path),
        Err(_) if older_is_kept => {}
        Err(_) => drop(files.unflushed.remove(path)),
    }
    release(files, path);
    placed
}

/// Exchanges a file and a temporary one, and keeps what the file had, unless an older content is kept
/// and this one may not be on the disk.
fn place(path: &Path, temporary: &Path, older_is_kept: bool) -> io::Result<()> {
    let done = match (exchange(temporary, path)?, older_is_kept) {
        (true, false) => fs::rename(temporary, kept(path)),
        (true, true) => remove(temporary),
        (false, _) => Ok(()),
    };
    report(path, done);
    Ok(())
}

/// Notes that a file may not be on the disk, as something is kept of it: the process that wrote it died
/// before it was flushed.
pub(crate) fn flush_interrupted(path: &Path) {
    let mut files = files();
    files.unflushed.insert(path.to_owned());
    flush_later(path);
}

/// Notes that the queue flushed a file. Whether what is kept of it is needless.
pub(crate) fn on_flushed(path: &Path) -> bool {
    let mut files = files();
    let again = is_queued(path);
    files.on_flushed(path, again)
}

/// Removes what [`on_flushed`] called needless, unless that is needed again.
pub(crate) fn remove_needless(path: &Path) {
    let claimed = claim(path);
    let needed = claimed.unflushed.contains(path);
    drop(claimed);
    if !needed {
        report(path, remove(&kept(path)));
    }
    release(files(), path);
}

/// Removes what is kept of a file that is to be removed, or that its writer has flushed.
pub(crate) fn forget(path: &Path) -> io::Result<()> {
    files().unflushed.remove(path);
    remove(&kept(path))
}

/// Exchanges two files. `false` if there is no second one, or if the file system can't; then the first
/// is renamed.
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
        let mut files = Files {
            unflushed: BTreeSet::new(),
            claimed: BTreeSet::new(),
        };
        let put = |files: &mut Files, text: &str| {
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
        remove_needless(&file);
        assert!(kept(&file).exists());
        assert!(on_flushed(&file));
        remove_needless(&file);
        assert!(!kept(&file).exists());
        assert!(!files().claimed.contains(&file));
    }
}
