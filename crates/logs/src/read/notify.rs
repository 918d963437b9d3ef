//! Waiting for a log to grow, to be closed by its writer, or to be rotated: inotify on the file
//! and on its folder.

use std::{convert::Infallible, io, mem::MaybeUninit, os::fd::OwnedFd, path::Path};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
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
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        if let Some(folder) = path.parent() {
            inotify::add_watch(&fd, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
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
        let _gone = inotify::remove_watch(self.inotify.get_ref(), self.file);
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
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut closed = None;
        loop {
            let drained: io::Result<Infallible> = self.inotify.try_io(Interest::READABLE, |fd| {
                let mut reader = Reader::new(fd, &mut buffer);
                loop {
                    let event = reader.next()?;
                    if event.wd() == self.file {
                        closed = Some(event.events().contains(ReadFlags::CLOSE_WRITE));
                    }
                }
            });
            match drained {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(closed),
                Err(error) => return Err(error),
                Ok(never) => match never {},
            }
        }
    }
}

fn watch_file(fd: &OwnedFd, file: &LogFile) -> io::Result<i32> {
    let flags = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
    Ok(inotify::add_watch(fd, file.descriptor_path(), flags)?)
}
