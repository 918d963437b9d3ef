//! inotify on a manifest directory, its parent, or the nearest directory that exists.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use rubelet_host::inotify::Inotify;
use rustix::fs::inotify::{ReadFlags, WatchFlags};

/// A change of a manifest file, or of the watched path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DirectoryEvent {
    /// The file of this name was closed after writing, moved here or linked.
    Changed(OsString),
    /// The file of this name was removed or moved away.
    Removed(OsString),
    /// The file of this name is being written.
    Writing(OsString),
    /// The directory or one above it was created, removed or renamed; or events were lost.
    PathChanged,
}

/// A watched directory.
#[derive(Debug)]
struct WatchedDirectory {
    directory: PathBuf,
    identity: (u64, u64),
    /// The only relevant name; all if `None`.
    only: Option<OsString>,
    /// True if the directory contains manifests; otherwise only creation and removal of `only`
    /// matter.
    manifests: bool,
}

/// Events for one path.
pub(super) struct DirectoryEvents {
    inotify: Inotify,
    watched: BTreeMap<i32, WatchedDirectory>,
    /// A watched directory moved, was removed or unmounted.
    stale: bool,
}

impl DirectoryEvents {
    /// Watches the current path: a directory and its entry in the parent directory, a file in its
    /// directory, or for a missing path the nearest directory above it.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let inotify = Inotify::new()?;
        let mut watched = BTreeMap::new();
        let mut missing = path;
        if fs::metadata(path).is_ok_and(|meta| meta.is_dir()) {
            add(&inotify, &mut watched, path, None, true)?;
        }
        while let Some(around) = missing.parent() {
            let around = if around.as_os_str().is_empty() {
                Path::new(".")
            } else {
                around
            };
            let manifests = missing == path && !path.is_dir();
            let name = missing.file_name().map(OsStr::to_owned);
            match add(&inotify, &mut watched, around, name, manifests) {
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && around != Path::new(".") =>
                {
                    missing = around;
                }
                result => {
                    result?;
                    break;
                }
            }
        }
        Ok(Self {
            inotify,
            watched,
            stale: false,
        })
    }

    /// True if the watches still match the path.
    pub(super) fn still_fits(&self, path: &Path) -> bool {
        let same = |watched: &WatchedDirectory| {
            identity(&watched.directory).is_some_and(|identity| identity == watched.identity)
        };
        let is_directory = path.is_dir();
        let watched_as_directory = self.watched.values().any(|w| w.only.is_none());
        let nearest = path.parent().is_none_or(|parent| {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            !parent.exists() || self.watched.values().any(|w| w.directory == parent)
        });
        !self.stale
            && is_directory == watched_as_directory
            && nearest
            && self.watched.values().all(same)
    }

    /// Waits until there are events.
    pub(super) async fn wait(&self) -> io::Result<()> {
        self.inotify.readable().await
    }

    /// Takes all relevant events, including those that [`Self::wait`] did not report yet.
    pub(super) fn drain(&mut self) -> io::Result<Vec<DirectoryEvent>> {
        let mut events = Vec::new();
        self.inotify.drain(|event| {
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            let directory = self.watched.get(&event.wd());
            events.extend(classify(directory, event.events(), name, &mut self.stale));
        })?;
        Ok(events)
    }
}

fn classify(
    place: Option<&WatchedDirectory>,
    events: ReadFlags,
    name: Option<&OsStr>,
    stale: &mut bool,
) -> Option<DirectoryEvent> {
    let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
    if events.intersects(gone | ReadFlags::IGNORED) {
        *stale = true;
        return Some(DirectoryEvent::PathChanged);
    }
    let (Some(place), Some(name)) = (place, name) else {
        return Some(DirectoryEvent::PathChanged);
    };
    if place.only.as_deref().is_some_and(|only| only != name) {
        return None;
    }
    if !place.manifests {
        *stale = true;
        return Some(DirectoryEvent::PathChanged);
    }
    let name = name.to_owned();
    if events.contains(ReadFlags::MODIFY) {
        return Some(DirectoryEvent::Writing(name));
    }
    if events.contains(ReadFlags::CREATE) {
        // A new file is empty, and an event reports when its writer closes it. Hard links, symbolic
        // links and directories are complete at once.
        let meta = fs::symlink_metadata(place.directory.join(&name));
        if meta.is_ok_and(|meta| meta.is_file() && meta.nlink() == 1) {
            return Some(DirectoryEvent::Writing(name));
        }
    }
    if events.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
        return Some(DirectoryEvent::Removed(name));
    }
    Some(DirectoryEvent::Changed(name))
}

fn add(
    inotify: &Inotify,
    watched: &mut BTreeMap<i32, WatchedDirectory>,
    directory: &Path,
    only: Option<OsString>,
    manifests: bool,
) -> io::Result<()> {
    let mut flags = WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    if manifests {
        flags |= WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY;
    }
    let id = inotify.add_watch(directory, flags)?;
    let identity = identity(directory).ok_or(io::ErrorKind::NotFound)?;
    watched.insert(
        id,
        WatchedDirectory {
            directory: directory.to_owned(),
            identity,
            only,
            manifests,
        },
    );
    Ok(())
}

fn identity(directory: &Path) -> Option<(u64, u64)> {
    fs::metadata(directory)
        .ok()
        .map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, time::Duration};

    use tokio::time::timeout;

    use super::*;

    /// One thread: tokio's I/O driver does not run between the steps.
    #[tokio::test]
    async fn drain_returns_events_that_the_io_driver_has_not_reported_yet() {
        let around = tempfile::tempdir().unwrap();
        let directory = around.path().join("manifests");
        fs::create_dir(&directory).unwrap();
        let mut events = DirectoryEvents::new(&directory).unwrap();
        let name = OsString::from("a.yaml");
        for _ in 0..3 {
            let mut file = fs::File::create(directory.join(&name)).unwrap();
            file.write_all(b"half").unwrap();
            let writing = DirectoryEvent::Writing(name.clone());
            assert!(events.drain().unwrap().contains(&writing));
            drop(file);
            let closed = DirectoryEvent::Changed(name.clone());
            assert_eq!(events.drain().unwrap(), [closed]);
        }
        // What was drained does not wake again.
        fs::create_dir(directory.join("b")).unwrap();
        events.wait().await.unwrap();
        let made = DirectoryEvent::Changed("b".into());
        assert_eq!(events.drain().unwrap(), [made]);
        assert!(timeout(Duration::ZERO, events.wait()).await.is_err());
    }
}
