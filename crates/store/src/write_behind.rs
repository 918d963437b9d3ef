//! Flushes files to the disk behind the action that wrote them, in order.
//!
//! A reaction must not wait for a disk that somebody else keeps busy. What a process death must not
//! lose is in the page cache when a save returns; what a power cut must not lose is flushed by one
//! thread of the process, which starts with the first file and sleeps while there is none.

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
    kept::{on_flushed, remove_needless},
    replace::{directory, sync_dir},
};

/// Stack of the thread; it holds a path or two.
const STACK: usize = 64 << 10;

/// How long nothing was flushed before files that are no longer needed are removed. While a disk is
/// busy, a removal keeps everything else of its directory waiting, so it comes after a burst of saves.
const QUIET: Duration = Duration::from_secs(1);

static QUEUE: Queue = Queue {
    state: Mutex::new(State {
        waiting: VecDeque::new(),
        queued: None,
        needless: BTreeSet::new(),
        hurried: false,
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
    /// Flushed files of which something is kept that is no longer needed.
    needless: BTreeSet<PathBuf>,
    /// Whether somebody waits for the end of everything.
    hurried: bool,
    /// Whether the thread exists.
    runs: bool,
    /// Whether the thread flushes or removes files.
    busy: bool,
}

impl State {
    fn push(&mut self, path: &Path) {
        let queued = self.queued.get_or_insert_default();
        if queued.insert(path.to_path_buf()) {
            self.waiting.push_back(path.to_path_buf());
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is complete.
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
                let needless = flush(&files);
                state = self.state();
                state.needless.extend(needless);
            } else if (quiet || state.hurried)
                && let Some(path) = state.needless.pop_first()
            {
                state.busy = true;
                drop(state);
                remove_needless(&path);
                state = self.state();
            } else {
                state.busy = false;
                self.changed.notify_all();
                let timeout = (!state.needless.is_empty()).then_some(QUIET);
                (state, quiet) = self.wait(state, timeout);
            }
        }
    }

    /// Waits for a change; whether none came in time.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        timeout: Option<Duration>,
    ) -> (MutexGuard<'a, State>, bool) {
        let Some(timeout) = timeout else {
            let waited = self.changed.wait(state);
            return (waited.unwrap_or_else(PoisonError::into_inner), false);
        };
        let waited = self.changed.wait_timeout(state, timeout);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (state, waited.timed_out())
    }
}

/// Flushes a file that was written, renamed or removed, and its directory, as soon as the disk
/// allows. Never blocks.
pub fn flush_later(path: &Path) {
    let mut state = QUEUE.state();
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

/// Waits until everything that was queued before is on the disk, or can't be, and what is no longer
/// needed is removed.
pub fn wait_for_flush() {
    let mut state = QUEUE.state();
    state.hurried = true;
    QUEUE.changed.notify_all();
    while state.busy || !state.waiting.is_empty() || !state.needless.is_empty() {
        (state, _) = QUEUE.wait(state, None);
    }
    state.hurried = false;
}

/// Whether a file waits to be flushed.
pub(crate) fn is_queued(path: &Path) -> bool {
    let state = QUEUE.state();
    state
        .queued
        .as_ref()
        .is_some_and(|queued| queued.contains(path))
}

/// Flushes files in their order, then their directories: each rename is on the disk with what it
/// renamed. Those of which nothing needs to be kept any longer.
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

/// Whether a file was flushed, or is gone.
pub(crate) fn report(path: &Path, flushed: io::Result<()>) -> bool {
    match flushed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "A record can't be flushed to the disk; a power cut may lose it");
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_file_waits_once() {
        let mut state = State {
            waiting: VecDeque::new(),
            queued: None,
            needless: BTreeSet::new(),
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
