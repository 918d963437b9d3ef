//! Flushes files to the disk behind the action that wrote them, in order.
//!
//! A reaction must not wait for a disk that somebody else keeps busy. What a process death must not
//! lose is in the page cache when a save returns; what a power cut must not lose is flushed by one
//! thread of the process, which starts with the first file and sleeps while there is none.

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use rustix::fs::OFlags;

use crate::replace::{directory, exchange, kept, remove, sync_dir};

/// Stack of the thread; it holds a path or two.
const STACK: usize = 64 << 10;

static QUEUE: Queue = Queue {
    state: Mutex::new(State {
        waiting: VecDeque::new(),
        queued: None,
        unflushed: None,
        runs: false,
        busy: false,
    }),
    changed: Condvar::new(),
};

struct Queue {
    state: Mutex<State>,
    /// Notified when a file is queued and when none is left.
    changed: Condvar,
}

struct State {
    waiting: VecDeque<PathBuf>,
    /// The files of `waiting`; one that is written again meanwhile is flushed once.
    queued: Option<HashSet<PathBuf>>,
    /// Files whose present content is not on the disk yet, so that what is kept of them must stay.
    unflushed: Option<HashSet<PathBuf>>,
    /// Whether the thread exists.
    runs: bool,
    /// Whether the thread is flushing files.
    busy: bool,
}

impl State {
    fn push(&mut self, path: &Path) {
        let queued = self.queued.get_or_insert_default();
        if queued.insert(path.to_path_buf()) {
            self.waiting.push_back(path.to_path_buf());
        }
    }

    /// Gives a file the content of a temporary one. What it had before is kept, if that is on the
    /// disk.
    fn put_in_place(&mut self, path: &Path, temporary: &Path) -> io::Result<()> {
        if exchange(temporary, path)? {
            let done = match self.note_unflushed(path) {
                // An older content is kept already, and this one may not be on the disk.
                true => remove(temporary),
                false => fs::rename(temporary, kept(path)),
            };
            report(path, done);
        }
        Ok(())
    }

    /// Notes that a file has a content that is not on the disk. `true` if it had one before.
    fn note_unflushed(&mut self, path: &Path) -> bool {
        let unflushed = self.unflushed.get_or_insert_default();
        !unflushed.insert(path.to_path_buf())
    }

    /// Removes what was kept of files that are flushed, unless they were replaced meanwhile.
    fn forget_kept(&mut self, flushed: &VecDeque<PathBuf>) {
        for path in flushed {
            let again = self
                .queued
                .as_ref()
                .is_some_and(|queued| queued.contains(path));
            let unflushed = self.unflushed.get_or_insert_default();
            // Under the lock: a save that comes next keeps the content which is flushed now.
            if !again && unflushed.remove(path) {
                report(path, remove(&kept(path)));
            }
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is complete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.state();
        loop {
            if state.waiting.is_empty() {
                state.busy = false;
                self.changed.notify_all();
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.busy = true;
            let files = std::mem::take(&mut state.waiting);
            state.queued = None;
            drop(state);
            flush(&files);
            state = self.state();
            state.forget_kept(&files);
        }
    }
}

/// Flushes a file that was written, renamed or removed, and its directory, as soon as the disk
/// allows. Never blocks.
pub fn flush_later(path: &Path) {
    queue(&mut QUEUE.state(), path);
}

fn queue(state: &mut State, path: &Path) {
    if !state.runs {
        let thread = thread::Builder::new()
            .name("flush".to_owned())
            .stack_size(STACK)
            .spawn(|| QUEUE.run());
        match thread {
            Ok(_) => state.runs = true,
            // The kernel writes the file by itself within half a minute; the next one tries again.
            Err(error) => {
                tracing::warn!(%error, "The thread that flushes records can't be started");
                return;
            }
        }
    }
    state.push(path);
    QUEUE.changed.notify_all();
}

/// Gives a file the content of a temporary one, and flushes it later. What it had before is kept
/// until then.
pub(crate) fn put_in_place(path: &Path, temporary: &Path) -> io::Result<()> {
    let mut state = QUEUE.state();
    state.put_in_place(path, temporary)?;
    queue(&mut state, path);
    Ok(())
}

/// Notes that a file may have a content that is not on the disk, since something is kept of it:
/// the process that wrote it died before it was flushed.
pub(crate) fn flush_and_forget_kept(path: &Path) {
    let mut state = QUEUE.state();
    state.note_unflushed(path);
    queue(&mut state, path);
}

/// Waits until everything that was queued before is on the disk, or can't be.
pub fn wait_for_flush() {
    let mut state = QUEUE.state();
    while state.busy || !state.waiting.is_empty() {
        state = QUEUE
            .changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// Flushes files in their order, then their directories: each rename is on the disk with what it
/// renamed.
fn flush(files: &VecDeque<PathBuf>) {
    let mut directories = BTreeSet::new();
    for path in files {
        report(path, sync_file(path));
        directories.insert(directory(path));
    }
    for path in directories {
        report(path, sync_dir(path));
    }
}

fn sync_file(path: &Path) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    file.sync_all()
}

fn report(path: &Path, flushed: io::Result<()>) {
    match flushed {
        Ok(()) => {}
        // It was removed since.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "A record can't be flushed to the disk; a power cut may lose it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_becomes_of_a_file_the_queue_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("there"), "x").unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("link")).unwrap();
        for name in ["there", "gone", "link", "there", "no/such/directory"] {
            flush_later(&path(name));
        }
        wait_for_flush();
        let state = QUEUE.state();
        assert!(state.runs);
    }

    /// A queue that nothing flushes.
    fn state() -> State {
        State {
            waiting: VecDeque::new(),
            queued: None,
            unflushed: None,
            runs: true,
            busy: true,
        }
    }

    #[test]
    fn what_is_on_the_disk_is_kept_until_something_newer_is() {
        let dir = tempfile::tempdir().unwrap();
        let (file, temporary) = (dir.path().join("file"), dir.path().join("temporary"));
        let mut state = state();
        let put = |state: &mut State, text: &str| {
            fs::write(&temporary, text).unwrap();
            state.put_in_place(&file, &temporary).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert!(!temporary.exists());
            fs::read_to_string(kept(&file)).ok()
        };
        assert_eq!(put(&mut state, "one"), None);
        assert_eq!(put(&mut state, "two").as_deref(), Some("one"));
        assert_eq!(put(&mut state, "three").as_deref(), Some("one"));
        // It was flushed, and is written again at once.
        let flushed = VecDeque::from([file.clone()]);
        state.push(&file);
        state.forget_kept(&flushed);
        assert!(kept(&file).exists());
        (state.waiting, state.queued) = Default::default();
        state.forget_kept(&flushed);
        assert!(!kept(&file).exists());
        assert_eq!(put(&mut state, "four").as_deref(), Some("three"));
    }

    #[test]
    fn a_file_waits_once() {
        let mut state = state();
        for path in ["/a", "/b", "/a"] {
            state.push(Path::new(path));
        }
        assert_eq!(state.waiting, [Path::new("/a"), Path::new("/b")]);
    }
}
