//! Flushes files to the disk in the background, in the order of their writes.
//!
//! The agent must not wait for a disk that is busy. When a save returns, the data is in the page
//! cache and survives a crash of the process. One thread, started with the first file, flushes it
//! so that it survives a power failure.

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::fs::OFlags;

use crate::{
    kept::{on_flushed, remove_obsolete},
    replace::{directory, sync_dir},
};

/// Stack of the thread; it holds a path or two.
const STACK: usize = 64 << 10;

/// Idle time of the queue before obsolete files are removed. A removal on a busy disk blocks all
/// other operations in its directory, so it is deferred until after a burst of saves.
const QUIET: Duration = Duration::from_secs(1);

static QUEUE: FlushQueue = FlushQueue {
    state: Mutex::new(FlushState {
        waiting: VecDeque::new(),
        queued: None,
        obsolete: BTreeSet::new(),
        hurried: false,
        runs: false,
        busy: false,
    }),
    changed: Condvar::new(),
};

struct FlushQueue {
    state: Mutex<FlushState>,
    /// Notified when a file is queued and when the queue becomes empty.
    changed: Condvar,
}

struct FlushState {
    waiting: VecDeque<PathBuf>,
    /// The files in `waiting`: a file that is written again meanwhile is flushed once.
    queued: Option<HashSet<PathBuf>>,
    /// Flushed files with an obsolete backup.
    obsolete: BTreeSet<PathBuf>,
    /// True if a caller waits for the queue to become empty.
    hurried: bool,
    /// True if the thread exists.
    runs: bool,
    /// True while the thread flushes or removes files.
    busy: bool,
}

impl FlushState {
    fn push(&mut self, path: &Path) {
        let queued = self.queued.get_or_insert_default();
        if queued.insert(path.to_path_buf()) {
            self.waiting.push_back(path.to_path_buf());
        }
    }
}

impl FlushQueue {
    fn state(&self) -> MutexGuard<'_, FlushState> {
        // A poisoned lock is usable: each change is atomic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut quiet = false;
        let mut state = self.state();
        loop {
            if !state.waiting.is_empty() {
                quiet = false;
                state.busy = true;
                let files = std::mem::take(&mut state.waiting);
                state.queued = None;
                drop(state);
                let obsolete = flush(&files);
                state = self.state();
                state.obsolete.extend(obsolete);
            } else if (quiet || state.hurried)
                && let Some(path) = state.obsolete.pop_first()
            {
                state.busy = true;
                drop(state);
                remove_obsolete(&path);
                state = self.state();
            } else {
                state.busy = false;
                self.changed.notify_all();
                let timeout = (!state.obsolete.is_empty()).then_some(QUIET);
                (state, quiet) = self.wait(state, timeout);
            }
        }
    }

    /// Waits for a change; true on a timeout.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, FlushState>,
        timeout: Option<Duration>,
    ) -> (MutexGuard<'a, FlushState>, bool) {
        let Some(timeout) = timeout else {
            let waited = self.changed.wait(state);
            return (waited.unwrap_or_else(PoisonError::into_inner), false);
        };
        let waited = self.changed.wait_timeout(state, timeout);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (state, waited.timed_out())
    }
}

/// Queues the flush of a file that was written, renamed or removed, and of its directory. Never
/// blocks.
pub fn flush_later(path: &Path) {
    let mut state = QUEUE.state();
    if !state.runs {
        let thread = thread::Builder::new()
            .name("flush".to_owned())
            .stack_size(STACK)
            .spawn(|| QUEUE.run());
        match thread {
            Ok(_) => state.runs = true,
            // The kernel writes the file within half a minute; the next call retries.
            Err(error) => {
                tracing::warn!(%error, "Cannot start the thread that flushes records");
                return;
            }
        }
    }
    state.push(path);
    QUEUE.changed.notify_all();
}

/// Waits until all queued files are flushed or failed, and obsolete backups are removed.
pub fn wait_for_flush() {
    let mut state = QUEUE.state();
    state.hurried = true;
    QUEUE.changed.notify_all();
    while state.busy || !state.waiting.is_empty() || !state.obsolete.is_empty() {
        (state, _) = QUEUE.wait(state, None);
    }
    state.hurried = false;
}

/// True if a file is queued.
pub(crate) fn is_queued(path: &Path) -> bool {
    let state = QUEUE.state();
    state
        .queued
        .as_ref()
        .is_some_and(|queued| queued.contains(path))
}

/// True if a file is flushed and its backup waits for its removal.
pub(crate) fn is_obsolete(path: &Path) -> bool {
    QUEUE.state().obsolete.contains(path)
}

/// Flushes files in order, then their directories, so that each rename is on the disk with its
/// file. Returns the files whose backups are obsolete.
fn flush(files: &VecDeque<PathBuf>) -> Vec<PathBuf> {
    let mut directories = BTreeSet::new();
    let mut flushed = Vec::new();
    for path in files {
        if report(path, sync_file(path)) {
            flushed.push(path);
        }
        directories.insert(directory(path));
    }
    directories.retain(|path| report(path, sync_dir(path)));
    flushed.retain(|path| directories.contains(directory(path)) && on_flushed(path));
    flushed.into_iter().cloned().collect()
}

fn sync_file(path: &Path) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    file.sync_all()
}

/// True if a file was flushed or no longer exists.
pub(crate) fn report(path: &Path, flushed: io::Result<()>) -> bool {
    match flushed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "Cannot flush a record to the disk, a power failure may lose it");
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::{flush_interrupted, kept, put_in_place};

    #[test]
    fn whatever_becomes_of_a_file_the_queue_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("there"), "x").unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("link")).unwrap();
        for name in ["there", "gone", "link", "there", "no/such/directory"] {
            flush_later(&path(name));
        }
        wait_for_flush();
        let state = QUEUE.state();
        assert!(state.runs);
    }

    #[test]
    fn a_file_that_is_loaded_soon_after_its_flush_counts_as_flushed() {
        let dir = tempfile::tempdir().unwrap();
        let [file, temporary] = ["file", "temporary"].map(|name| dir.path().join(name));
        std::fs::write(&file, "flushed").unwrap();
        std::fs::write(kept(&file), "older").unwrap();
        QUEUE.state().obsolete.insert(file.clone());
        flush_interrupted(&file);
        std::fs::write(&temporary, "new").unwrap();
        put_in_place(&file, &temporary).unwrap();
        // Unless it is removed already, as "new" is flushed.
        if let Ok(text) = std::fs::read_to_string(kept(&file)) {
            assert_eq!(text, "flushed");
        }
    }

    #[test]
    fn a_file_waits_once() {
        let mut state = FlushState {
            waiting: VecDeque::new(),
            queued: None,
            obsolete: BTreeSet::new(),
            hurried: false,
            runs: true,
            busy: true,
        };
        for path in ["/a", "/b", "/a"] {
            state.push(Path::new(path));
        }
        assert_eq!(state.waiting, [Path::new("/a"), Path::new("/b")]);
    }
}
