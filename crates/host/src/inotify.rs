//! Reading what an inotify descriptor has.

use std::{convert::Infallible, io, mem::MaybeUninit, os::fd::AsFd};

use rustix::fs::inotify::{Event, Reader};

/// Gives all events of a descriptor that does not block to `each`.
///
/// # Errors
/// Always ends with one: that nothing is left ([`io::ErrorKind::WouldBlock`]), as a task that waits
/// for the descriptor has to know, or that reading failed.
pub fn drain(fd: impl AsFd, mut each: impl FnMut(&Event<'_>)) -> io::Result<Infallible> {
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

/// Success once nothing is left: what [`drain`], in the midst of other things that may want to be
/// woken, means by its error.
///
/// # Errors
/// Reading failed.
pub fn drained(end: io::Result<Infallible>) -> io::Result<()> {
    match end {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
        Ok(never) => match never {},
    }
}
