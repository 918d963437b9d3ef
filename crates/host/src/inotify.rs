//! Watches for changes of files, for a tokio task.

use std::{
    convert::Infallible,
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::inotify::{self, CreateFlags, Event, Reader, WatchFlags},
    path::Arg,
};
use tokio::io::{Interest, unix::AsyncFd};

/// An inotify instance, see inotify(7).
#[derive(Debug)]
pub struct Inotify(AsyncFd<OwnedFd>);

impl Inotify {
    /// An instance without watches. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The user has reached `fs.inotify.max_user_instances`, or the process its open files.
    pub fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "its unsafe successor asks for what an OwnedFd guarantees"
        )]
        let fd = AsyncFd::new(fd)?;
        Ok(Self(fd))
    }

    /// Adds a watch, and returns the descriptor that its events carry.
    ///
    /// # Errors
    /// The path cannot be watched, or the user has reached `fs.inotify.max_user_watches`.
    pub fn add_watch(&self, path: impl Arg, flags: WatchFlags) -> io::Result<i32> {
        Ok(inotify::add_watch(self.0.get_ref(), path, flags)?)
    }

    /// Removes a watch.
    ///
    /// # Errors
    /// The kernel removed it already: the file is deleted.
    pub fn remove_watch(&self, watch: i32) -> io::Result<()> {
        Ok(inotify::remove_watch(self.0.get_ref(), watch)?)
    }

    /// Waits until there are events. Leaves them for [`Self::drain`].
    ///
    /// # Errors
    /// The tokio runtime shuts down.
    pub async fn readable(&self) -> io::Result<()> {
        self.0
            .readable()
            .await
            .map(|mut ready| ready.retain_ready())
    }

    /// Reads all pending events, also those that [`Self::readable`] did not report yet.
    ///
    /// # Errors
    /// Reading failed.
    pub fn drain(&mut self, mut each: impl FnMut(&Event<'_>)) -> io::Result<()> {
        // tokio caches readiness, and on a busy machine the cache lags behind the kernel. So the first
        // read ignores it; the second one goes through it, and clears it when nothing is left.
        until_empty(read_all(self.0.get_ref(), &mut each))?;
        until_empty(
            self.0
                .try_io(Interest::READABLE, |fd| read_all(fd, &mut each)),
        )
    }
}

/// Always ends with an error: `WouldBlock` once nothing is left, which `try_io` needs to clear the
/// cached readiness.
fn read_all(fd: impl AsFd, each: &mut impl FnMut(&Event<'_>)) -> io::Result<Infallible> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(fd, &mut buffer);
    loop {
        match reader.next() {
            Ok(event) => each(&event),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn until_empty(read: io::Result<Infallible>) -> io::Result<()> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
        Ok(never) => match never {},
    }
}
