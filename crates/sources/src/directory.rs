//! A manifest directory or file: scanned on file events, and at intervals.

mod events;
mod scan;

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
use events::{DirectoryEvent, DirectoryEvents};
use scan::{LastScan, scan};

/// A file that disappeared, or changed while it was read, is scanned again after this time: many
/// programs replace a file by moving the old one away first.
const RESCAN_DELAY: Duration = Duration::from_millis(200);

/// Delay before the next scan when files were written during one.
const OVERTAKEN_DELAY: Duration = Duration::from_millis(50);

/// Maximum number of repeated scans, after which the last one counts.
const MAX_SCANS: u32 = 5;

/// A file that is being written is not read until it is closed, but at most this long after the
/// last write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Watches `path` until the receiver is dropped, and sends the result of each scan.
pub(crate) async fn watch(path: PathBuf, every: Duration, out: mpsc::Sender<Observation>) {
    let mut task = DirectoryTask {
        path: path.into(),
        every,
        events: None,
        warned: false,
        known: LastScan::default(),
        dirty: BTreeSet::new(),
        removed: BTreeSet::new(),
        writing: BTreeMap::new(),
        overtaken: false,
    };
    let mut debounce = Debounce::default();
    loop {
        let Some(observation) = task.scan().await else {
            return;
        };
        if out.send(observation).await.is_err() {
            return;
        }
        debounce.reset();
        task.wait(&mut debounce).await;
    }
}

struct DirectoryTask {
    path: Arc<std::path::Path>,
    every: Duration,
    events: Option<DirectoryEvents>,
    /// True if the lack of file events was already logged.
    warned: bool,
    known: LastScan,
    /// Files that were written since the last scan: their size and times may be unchanged.
    dirty: BTreeSet<OsString>,
    /// Files that were removed or moved away since the last scan: if they exist, they are new
    /// files.
    removed: BTreeSet<OsString>,
    /// Files that were written and not closed since, with the time of the last write.
    writing: BTreeMap<OsString, Instant>,
    /// Events arrived during the last scan, so it must be repeated.
    overtaken: bool,
}

impl DirectoryTask {
    /// Scans the path, and repeats an unstable scan. `None` when the agent shuts down.
    async fn scan(&mut self) -> Option<Observation> {
        self.watch_events();
        let now = Instant::now();
        self.writing.retain(|_, since| now < *since + WRITE_TIMEOUT);
        let mut missing = Vec::new();
        for repeats in (0..MAX_SCANS).rev() {
            let path = Arc::clone(&self.path);
            let known = std::mem::take(&mut self.known);
            let dirty = self.dirty.clone();
            let mut removed = std::mem::take(&mut self.removed);
            let writing: BTreeSet<OsString> = self.writing.keys().cloned().collect();
            let work = spawn_blocking(move || {
                let found = scan(&path, &known, &dirty, &writing);
                (known, found, writing)
            });
            let (known, found, writing) = work.await.ok()?;
            self.known = known;
            // A file that was written during the read may be incomplete.
            self.overtaken = self.take_events();
            self.overtaken |= self.writing.keys().any(|name| !writing.contains(name));
            if self.overtaken && repeats > 0 {
                self.removed.append(&mut removed);
                sleep(OVERTAKEN_DELAY).await;
                self.take_events();
                continue;
            }
            let missing_now = found.missing(&self.known);
            let sure =
                !found.is_unstable() && missing_now.iter().all(|path| missing.contains(path));
            if sure || repeats == 0 {
                if !self.overtaken {
                    self.dirty.clear();
                }
                // Files that are being written have not been read.
                let unread = removed.intersection(&writing).cloned();
                self.removed.extend(unread);
                return Some(found.accept(&mut self.known, &removed));
            }
            self.removed.append(&mut removed);
            missing = missing_now;
            sleep(RESCAN_DELAY).await;
            self.take_events();
        }
        None
    }

    /// Waits for the next scan.
    async fn wait(&mut self, debounce: &mut Debounce) {
        let full = Instant::now() + self.every;
        if std::mem::take(&mut self.overtaken) {
            debounce.event(Instant::now());
        }
        loop {
            let written = self
                .writing
                .values()
                .min()
                .map(|since| *since + WRITE_TIMEOUT);
            let due = debounce
                .due()
                .into_iter()
                .chain(written)
                .fold(full, Instant::min);
            let readable = async {
                match &self.events {
                    Some(events) => events.wait().await,
                    None => std::future::pending().await,
                }
            };
            let readable = tokio::select! {
                () = sleep_until(due) => return,
                readable = readable => readable,
            };
            if readable.is_err() {
                // The next full scan sets up events again.
                self.events = None;
            }
            if self.take_events() {
                debounce.event(Instant::now());
            }
        }
    }

    /// Sets up events for the current path before the scan, so that a change during it is an event.
    fn watch_events(&mut self) {
        if self
            .events
            .as_ref()
            .is_some_and(|events| events.still_fits(&self.path))
        {
            return;
        }
        match DirectoryEvents::new(&self.path) {
            Ok(events) => {
                self.events = Some(events);
                self.warned = false;
            }
            Err(error) => {
                self.events = None;
                if !std::mem::replace(&mut self.warned, true) {
                    let (path, every) = (self.path.display(), self.every);
                    tracing::warn!(%path, %error, ?every, "Cannot watch the manifest path, scanning it at intervals only");
                }
            }
        }
    }

    /// Takes pending events; true if the path must be scanned.
    fn take_events(&mut self) -> bool {
        let Some(events) = &mut self.events else {
            return false;
        };
        let Ok(list) = events.drain() else {
            self.events = None;
            return true;
        };
        let mut scan = false;
        for event in list {
            match event {
                DirectoryEvent::Writing(name) => {
                    self.writing.insert(name, Instant::now());
                    continue;
                }
                DirectoryEvent::Changed(name) => {
                    self.writing.remove(&name);
                    self.dirty.insert(name);
                }
                DirectoryEvent::Removed(name) => {
                    self.writing.remove(&name);
                    self.removed.insert(name.clone());
                    self.dirty.insert(name);
                }
                DirectoryEvent::PathChanged => {}
            }
            scan = true;
        }
        scan
    }
}
