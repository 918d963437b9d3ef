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

use crate::files::{directory, report, sync_dir};

/// Stack of the thread; it holds a path or two.
const STACK: usize = 64 << 10;

/// Idle time of the queue before obsolete files are removed. A removal on a busy disk blocks all
/// other operations in its directory, so it is deferred until after a burst of saves.
const QUIET: Duration = Duration::from_secs(1);

/// The files to flush, and the thread that flushes them. What keeps backups of the files decides
/// whether they are obsolete.
pub(crate) struct FlushQueue {
    /// Notes that a file was flushed. True if its backup is obsolete.
    on_flushed: fn(&Path) -> bool,
    /// Removes an obsolete backup.
    remove_obsolete: fn(&Path),
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
    /// An empty queue; the thread starts with the first file.
    pub(crate) const fn new(on_flushed: fn(&Path) -> bool, remove_obsolete: fn(&Path)) -> Self {
        Self {
            on_flushed,
            remove_obsolete,
            state: Mutex::new(FlushState {
                waiting: VecDeque::new(),
                queued: None,
                obsolete: BTreeSet::new(),
                hurried: false,
                runs: false,
                busy: false,
            }),
            changed: Condvar::new(),
        }
    }

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
                let obsolete = flush(&files, self.on_flushed);
                state = self.state();
                state.obsolete.extend(obsolete);
            } else if (quiet || state.hurried)
                && let Some(path) = state.obsolete.pop_first()
            {
                state.busy = true;
                drop(state);
                (self.remove_obsolete)(&path);
                state = self.state();
            } else {
                state.busy = false;
                self.changed.notify_all();
                let timeout = (!state.obsolete.is_empty()).then_some(QUIET);
                (state, quiet) = self.wait(state, timeout);
            }
        }
    }

    /// Queues the flush of a file that was written, renamed or removed, and of its directory. Never
    /// blocks.
    pub(crate) fn flush_later(&'static self, path: &Path) {
        let mut state = self.state();
        if !state.runs {
            let thread = thread::Builder::new()
                .name("flush".to_owned())
                .stack_size(STACK)
                .spawn(|| self.run());
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
        self.changed.notify_all();
    }

    /// Waits until all queued files are flushed or failed, and obsolete backups are removed.
    pub(crate) fn wait_for_flush(&self) {
        let mut state = self.state();
        state.hurried = true;
        self.changed.notify_all();
        while state.busy || !state.waiting.is_empty() || !state.obsolete.is_empty() {
            (state, _) = self.wait(state, None);
        }
        state.hurried = false;
    }

    /// True if a file is queued.
    pub(crate) fn is_queued(&self, path: &Path) -> bool {
        let state = self.state();
        state
            .queued
            .as_ref()
            .is_some_and(|queued| queued.contains(path))
    }

    /// True if a file is flushed and its backup waits for its removal.
    pub(crate) fn is_obsolete(&self, path: &Path) -> bool {
        self.state().obsolete.contains(path)
    }

    #[cfg(test)]
    pub(crate) fn add_obsolete(&self, path: &Path) {
        self.state().obsolete.insert(path.to_path_buf());
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

/// Flushes files in order, then their directories, so that each rename is on the disk with its
/// file. Returns the files whose backups are obsolete.
fn flush(files: &VecDeque<PathBuf>, on_flushed: fn(&Path) -> bool) -> Vec<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_becomes_of_a_file_the_queue_ends() {
        static QUEUE: FlushQueue = FlushQueue::new(|_| true, |_| {});
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("there"), "x").unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("link")).unwrap();
        for name in ["there", "gone", "link", "there", "no/such/directory"] {
            QUEUE.flush_later(&path(name));
        }
        QUEUE.wait_for_flush();
        let state = QUEUE.state();
        assert!(state.runs);
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
