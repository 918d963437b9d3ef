//! Waits for a log to grow, to be closed by its writer, or to be rotated: inotify on the file and
//! on its directory.

use std::{io, path::Path};

use rubelet_host::inotify::Inotify;
use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::files::LogFile;

/// Watches one file and the names in its directory. Events only wake the reader, which then checks
/// the files. The exception is what it can't check: that the writer closed the file.
pub(super) struct LogWatch {
    inotify: Inotify,
    file: i32,
}

impl LogWatch {
    /// Starts watching. Fails at `fs.inotify.max_user_watches`.
    pub(super) fn new(path: &Path, file: &LogFile) -> io::Result<Self> {
        let inotify = Inotify::new()?;
        if let Some(directory) = path.parent() {
            inotify.add_watch(directory, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        }
        let file = watch_file(&inotify, file)?;
        Ok(Self { inotify, file })
    }

    /// Watches the file that replaced the former one.
    pub(super) fn switch_to(&mut self, file: &LogFile) -> io::Result<()> {
        // Deleting the former file removed its watch, too.
        let _gone = self.inotify.remove_watch(self.file);
        self.file = watch_file(&self.inotify, file)?;
        Ok(())
    }

    /// Waits for events.
    pub(super) async fn wait(&self) -> io::Result<()> {
        self.inotify.readable().await
    }

    /// Drains all events. Returns whether the last event of the file was a close by a writer;
    /// `None` without an event of the file.
    pub(super) fn drain(&mut self) -> io::Result<Option<bool>> {
        let mut closed = None;
        self.inotify.drain(|event| {
            if event.wd() == self.file {
                closed = Some(event.events().contains(ReadFlags::CLOSE_WRITE));
            }
        })?;
        Ok(closed)
    }
}

fn watch_file(inotify: &Inotify, file: &LogFile) -> io::Result<i32> {
    // Through the open descriptor: the path may refer to another file by now.
    inotify.add_watch(
        file.descriptor_path(),
        WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE,
    )
}
