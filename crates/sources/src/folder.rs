//! A folder of manifests, or a single file: events make a look, and so does the passing of time.

mod events;
mod look;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
    sync::Arc,
};

use tokio::{
    sync::mpsc,
    task::spawn_blocking,
    time::{Duration, Instant, sleep, sleep_until},
};

use crate::{debounce::Debounce, state::Observation};
use events::{FolderEvents, Happened};
use look::{Known, look};

/// A file that went away, or changed while it was read, is looked at again after this time: many
/// programs write a file by moving the old one away first.
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// So is the folder when files were written while it was being looked at.
const OVERTAKEN: Duration = Duration::from_millis(50);

/// But after so many looks the last one counts.
const MOST_LOOKS: u32 = 5;

/// A file that is being written is left alone until it is closed, but not longer than this after
/// the last write.
const WRITING: Duration = Duration::from_secs(10);

/// Watches `path` for ever, and tells what each look finds.
pub(crate) async fn watch(path: PathBuf, every: Duration, out: mpsc::Sender<Observation>) {
    let mut task = FolderTask {
        path: path.into(),
        every,
        events: None,
        warned: false,
        known: Known::default(),
        dirty: BTreeSet::new(),
        writing: BTreeMap::new(),
        overtaken: false,
    };
    let mut debounce = Debounce::default();
    loop {
        let Some(observation) = task.look().await else {
            return;
        };
        if out.send(observation).await.is_err() {
            return;
        }
        debounce.reset();
        task.wait(&mut debounce).await;
    }
}

struct FolderTask {
    path: Arc<std::path::Path>,
    every: Duration,
    events: Option<FolderEvents>,
    /// The operator was told that there are no events.
    warned: bool,
    known: Known,
    /// Files that were written since the last look: their size and times may tell nothing.
    dirty: BTreeSet<OsString>,
    /// Files that were written and not closed since, and when that was.
    writing: BTreeMap<OsString, Instant>,
    /// Something happened during the last look, so that there must be another one.
    overtaken: bool,
}

impl FolderTask {
    /// Looks, and looks again at what may be in between. `None` when the agent shuts down.
    async fn look(&mut self) -> Option<Observation> {
        self.watch_events();
        let now = Instant::now();
        self.writing.retain(|_, since| now < *since + WRITING);
        let mut missing = Vec::new();
        for repeats in (0..MOST_LOOKS).rev() {
            let path = Arc::clone(&self.path);
            let known = std::mem::take(&mut self.known);
            let dirty = self.dirty.clone();
            let writing: BTreeSet<OsString> = self.writing.keys().cloned().collect();
            let work = spawn_blocking(move || {
                let found = look(&path, &known, &dirty, &writing);
                (known, found, writing)
            });
            let (known, found, writing) = work.await.ok()?;
            self.known = known;
            // What was written while it was read may be half of it.
            self.overtaken = self.take_events();
            self.overtaken |= self.writing.keys().any(|name| !writing.contains(name));
            if self.overtaken && repeats > 0 {
                sleep(OVERTAKEN).await;
                self.take_events();
                continue;
            }
            let missing_now = found.missing(&self.known);
            let sure = !found.is_moving() && missing_now.iter().all(|path| missing.contains(path));
            if sure || repeats == 0 {
                if !self.overtaken {
                    self.dirty.clear();
                }
                return Some(found.settle(&mut self.known));
            }
            missing = missing_now;
            sleep(SECOND_LOOK).await;
            self.take_events();
        }
        None
    }

    /// Waits for the next look.
    async fn wait(&mut self, debounce: &mut Debounce) {
        let full = Instant::now() + self.every;
        if std::mem::take(&mut self.overtaken) {
            debounce.event(Instant::now());
        }
        loop {
            let written = self.writing.values().min().map(|since| *since + WRITING);
            let due = debounce
                .due()
                .into_iter()
                .chain(written)
                .fold(full, Instant::min);
            let happened = async {
                match &self.events {
                    Some(events) => events.wait().await,
                    None => std::future::pending().await,
                }
            };
            let happened = tokio::select! {
                () = sleep_until(due) => return,
                happened = happened => happened,
            };
            if happened.is_err() {
                // The full look goes on, and sets up events anew.
                self.events = None;
            }
            if self.take_events() {
                debounce.event(Instant::now());
            }
        }
    }

    /// Sets up events for the path as it is now, before the look that they complete.
    fn watch_events(&mut self) {
        if self
            .events
            .as_ref()
            .is_some_and(|events| events.still_fits(&self.path))
        {
            return;
        }
        match FolderEvents::new(&self.path) {
            Ok(events) => {
                self.events = Some(events);
                self.warned = false;
            }
            Err(error) => {
                self.events = None;
                if !std::mem::replace(&mut self.warned, true) {
                    let (path, every) = (self.path.display(), self.every);
                    tracing::warn!(%path, %error, ?every, "no file events, looking at intervals only");
                }
            }
        }
    }

    /// True if there is something to look at.
    fn take_events(&mut self) -> bool {
        let Some(events) = &mut self.events else {
            return false;
        };
        let Ok(list) = events.drain() else {
            self.events = None;
            return true;
        };
        let mut look = false;
        for happened in list {
            match happened {
                Happened::Writing(name) => {
                    self.writing.insert(name, Instant::now());
                    continue;
                }
                Happened::Changed(name) => {
                    self.writing.remove(&name);
                    self.dirty.insert(name);
                }
                Happened::Elsewhere => {}
            }
            look = true;
        }
        look
    }
}
