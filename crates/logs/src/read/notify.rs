//! Waiting for a log to grow, to be closed by its writer, or to be rotated: inotify on the file
//! and on its folder.

use std::{io, os::fd::OwnedFd, path::Path};

use rubelet_host::inotify;
use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags, add_watch, init, remove_watch};
use tokio::io::{Interest, unix::AsyncFd};

use super::files::LogFile;

/// Watches one file and the names in its folder. Events only wake; what happened is found by
/// looking, except for the one thing that can't be seen: that the writer closed the file.
pub(super) struct LogWatch {
    inotify: AsyncFd<OwnedFd>,
    file: i32,
}

impl LogWatch {
    /// Begins to watch. Fails where the node's limit of watches is reached.
    pub(super) fn new(path: &Path, file: &LogFile) -> io::Result<Self> {
        let fd = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        if let Some(folder) = path.parent() {
            add_watch(&fd, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        }
        let file = watch_file(&fd, file)?;
        #[expect(
            deprecated,
            reason = "its unsafe successor asks for what an OwnedFd guarantees"
        )]
        let inotify = AsyncFd::new(fd)?;
        Ok(Self { inotify, file })
    }

    /// Goes on with the file that took the place of the former one.
    pub(super) fn turn_to(&mut self, file: &LogFile) -> io::Result<()> {
        // The former one may be gone, and its watch with it.
        let _gone = remove_watch(self.inotify.get_ref(), self.file);
        self.file = watch_file(self.inotify.get_ref(), file)?;
        Ok(())
    }

    /// Waits until something happened.
    pub(super) async fn wait(&self) -> io::Result<()> {
        self.inotify
            .readable()
            .await
            .map(|mut ready| ready.retain_ready())
    }

    /// Takes all events. Tells whether the last one of the file was that a writer closed it; `None`
    /// if the file had no event.
    pub(super) fn drain(&mut self) -> io::Result<Option<bool>> {
        let mut closed = None;
        inotify::drained(self.inotify.try_io(Interest::READABLE, |fd| {
            inotify::drain(fd, |event| {
                if event.wd() == self.file {
                    closed = Some(event.events().contains(ReadFlags::CLOSE_WRITE));
                }
            })
        }))?;
        Ok(closed)
    }
}

fn watch_file(fd: &OwnedFd, file: &LogFile) -> io::Result<i32> {
    let flags = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
    Ok(add_watch(fd, file.descriptor_path(), flags)?)
}
