//! inotify on a manifest folder, on the folder around it, or on the nearest folder that exists.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

use rubelet_host::inotify;
use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags, add_watch, init};
use tokio::io::{Interest, unix::AsyncFd};

/// Something that happened to a manifest, or where it lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// The file of this name was closed after writing, moved, linked or removed.
    Changed(OsString),
    /// The file of this name is being written.
    Writing(OsString),
    /// The folder or one above it came, went or changed its name; or events were lost.
    Elsewhere,
}

/// A folder that is watched.
#[derive(Debug)]
struct Watched {
    folder: PathBuf,
    identity: (u64, u64),
    /// The only name that counts; all if `None`.
    only: Option<OsString>,
    /// Manifests lie here; otherwise only coming and going counts.
    manifests: bool,
}

/// Events for one path.
pub(super) struct FolderEvents {
    inotify: AsyncFd<OwnedFd>,
    watched: BTreeMap<i32, Watched>,
    /// A watched folder moved, was removed or unmounted.
    stale: bool,
}

impl FolderEvents {
    /// Begins to watch the path as it is now: a folder and its place in the folder around it, a
    /// file in its folder, or for a path that does not exist the nearest folder above it.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let fd = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut watched = BTreeMap::new();
        let mut missing = path;
        if fs::metadata(path).is_ok_and(|meta| meta.is_dir()) {
            add(&fd, &mut watched, path, None, true)?;
        }
        while let Some(around) = missing.parent() {
            let around = if around.as_os_str().is_empty() {
                Path::new(".")
            } else {
                around
            };
            let manifests = missing == path && !path.is_dir();
            let name = missing.file_name().map(OsStr::to_owned);
            match add(&fd, &mut watched, around, name, manifests) {
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
        #[expect(
            deprecated,
            reason = "its unsafe successor asks for what an OwnedFd guarantees"
        )]
        let inotify = AsyncFd::new(fd)?;
        Ok(Self {
            inotify,
            watched,
            stale: false,
        })
    }

    /// False if the path has become something else than what is watched.
    pub(super) fn still_fits(&self, path: &Path) -> bool {
        let same = |watched: &Watched| {
            identity(&watched.folder).is_some_and(|identity| identity == watched.identity)
        };
        let is_folder = path.is_dir();
        let watched_as_folder = self.watched.values().any(|w| w.only.is_none());
        let nearest = path.parent().is_none_or(|parent| {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            !parent.exists() || self.watched.values().any(|w| w.folder == parent)
        });
        !self.stale && is_folder == watched_as_folder && nearest && self.watched.values().all(same)
    }

    /// Waits until there are events.
    pub(super) async fn wait(&self) -> io::Result<()> {
        self.inotify
            .readable()
            .await
            .map(|mut ready| ready.retain_ready())
    }

    /// Takes all events that count, also those that nobody was woken for yet.
    pub(super) fn drain(&mut self) -> io::Result<Vec<Happened>> {
        let mut happened = Vec::new();
        let Self {
            inotify: watch,
            watched,
            stale,
        } = self;
        let mut take = |fd: &OwnedFd| {
            inotify::drain(fd, |event| {
                let name = event
                    .file_name()
                    .map(|name| OsStr::from_bytes(name.to_bytes()));
                let place = watched.get(&event.wd());
                happened.extend(judge(place, event.events(), name, stale));
            })
        };
        // Whether there is something to read is remembered, and on a busy machine not up to date:
        // what was written while a file was read must not go unseen. Reading by what is remembered
        // corrects that.
        inotify::drained(take(watch.get_ref()))?;
        inotify::drained(watch.try_io(Interest::READABLE, |fd| take(fd)))?;
        Ok(happened)
    }
}

fn judge(
    place: Option<&Watched>,
    events: ReadFlags,
    name: Option<&OsStr>,
    stale: &mut bool,
) -> Option<Happened> {
    let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
    if events.intersects(gone | ReadFlags::IGNORED) {
        *stale = true;
        return Some(Happened::Elsewhere);
    }
    let (Some(place), Some(name)) = (place, name) else {
        return Some(Happened::Elsewhere);
    };
    if place.only.as_deref().is_some_and(|only| only != name) {
        return None;
    }
    if !place.manifests {
        *stale = true;
        return Some(Happened::Elsewhere);
    }
    let name = name.to_owned();
    if events.contains(ReadFlags::MODIFY) {
        return Some(Happened::Writing(name));
    }
    if events.contains(ReadFlags::CREATE) {
        // A new file is empty; what is written to it comes with its closing. Links and folders are
        // whole at once.
        let meta = fs::symlink_metadata(place.folder.join(&name));
        if meta.is_ok_and(|meta| meta.is_file() && meta.nlink() == 1) {
            return Some(Happened::Writing(name));
        }
    }
    Some(Happened::Changed(name))
}

fn add(
    fd: &OwnedFd,
    watched: &mut BTreeMap<i32, Watched>,
    folder: &Path,
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
    let id = add_watch(fd, folder, flags)?;
    let identity = identity(folder).ok_or(io::ErrorKind::NotFound)?;
    watched.insert(
        id,
        Watched {
            folder: folder.to_owned(),
            identity,
            only,
            manifests,
        },
    );
    Ok(())
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    fs::metadata(folder)
        .ok()
        .map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, time::Duration};

    use tokio::time::timeout;

    use super::*;

    /// One thread: nothing but this test could look for events meanwhile.
    #[tokio::test]
    async fn what_has_happened_is_known_before_anybody_was_woken_for_it() {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("manifests");
        fs::create_dir(&folder).unwrap();
        let mut events = FolderEvents::new(&folder).unwrap();
        let name = OsString::from("a.yaml");
        for _ in 0..3 {
            let mut file = fs::File::create(folder.join(&name)).unwrap();
            file.write_all(b"half").unwrap();
            let writing = Happened::Writing(name.clone());
            assert!(events.drain().unwrap().contains(&writing));
            drop(file);
            let closed = Happened::Changed(name.clone());
            assert_eq!(events.drain().unwrap(), [closed]);
        }
        // It does not stay awake for what was taken.
        fs::create_dir(folder.join("b")).unwrap();
        events.wait().await.unwrap();
        let made = Happened::Changed("b".into());
        assert_eq!(events.drain().unwrap(), [made]);
        assert!(timeout(Duration::ZERO, events.wait()).await.is_err());
    }
}
