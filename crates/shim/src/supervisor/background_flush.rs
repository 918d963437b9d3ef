//! Flushes files to disk in the background: the supervisor has a single thread and must not wait
//! for a disk, so the kernel does it on its own thread (io_submit(2), `IOCB_CMD_FSYNC`, Linux
//! 4.18).

use std::{
    fs::File,
    io,
    mem::{MaybeUninit, zeroed},
    os::fd::AsRawFd as _,
    ptr,
};

/// `IOCB_CMD_FSYNC` of linux/aio_abi.h.
const FSYNC: u16 = 2;
/// Flushes at a time; with more, the kernel writes the file by itself within half a minute.
const MOST: usize = 8;

/// `struct io_event` of linux/aio_abi.h.
type IoEvent = [u64; 4];

/// The flushes of this process. They continue when it exits.
#[derive(Debug, Default)]
pub(crate) struct BackgroundFlush {
    /// `aio_context_t`; created for the first flush, since it takes some pages.
    context: Option<libc::c_ulong>,
}

impl BackgroundFlush {
    /// Begins to flush a file or directory.
    ///
    /// # Errors
    /// The kernel can't do it in the background.
    pub(crate) fn begin(&mut self, file: &File) -> io::Result<()> {
        let context = match self.context {
            Some(context) => context,
            None => *self.context.insert(setup()?),
        };
        reap(context);
        submit(context, file)
    }
}

fn setup() -> io::Result<libc::c_ulong> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: the kernel writes the context into this variable, which must be 0 before.
    #[allow(unsafe_code)]
    let done = unsafe { libc::syscall(libc::SYS_io_setup, MOST, &raw mut context) };
    check(done)?;
    Ok(context)
}

/// Removes finished flushes from the kernel's ring. Their results are ignored: a file that can't be
/// written now can't be written later either.
fn reap(context: libc::c_ulong) {
    let mut events = [MaybeUninit::<IoEvent>::uninit(); MOST];
    let mut at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: there is room for MOST events, and the time is valid for the call.
    #[allow(unsafe_code)]
    let _ = unsafe {
        libc::syscall(
            libc::SYS_io_getevents,
            context,
            0,
            MOST,
            events.as_mut_ptr(),
            &raw mut at_once,
        )
    };
}

fn submit(context: libc::c_ulong, file: &File) -> io::Result<()> {
    // SAFETY: it is plain data, for which zeros are valid.
    #[allow(unsafe_code)]
    let mut request: libc::iocb = unsafe { zeroed() };
    request.aio_lio_opcode = FSYNC;
    request.aio_fildes = u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?;
    let mut requests = [ptr::from_mut(&mut request)];
    // SAFETY: the kernel copies the one request and holds the file before it returns.
    #[allow(unsafe_code)]
    let done = unsafe { libc::syscall(libc::SYS_io_submit, context, 1, requests.as_mut_ptr()) };
    check(done)
}

fn check(done: libc::c_long) -> io::Result<()> {
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn files_and_directories_are_flushed_more_often_than_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut flush = BackgroundFlush::default();
        let mut begun = 0;
        for number in 0..10 * MOST {
            let mut file = File::create(dir.path().join(number.to_string())).unwrap();
            file.write_all(b"x").unwrap();
            for file in [file, File::open(dir.path()).unwrap()] {
                match flush.begin(&file) {
                    Ok(()) => begun += 1,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
        }
        assert!(begun >= MOST, "{begun}");
    }

    #[test]
    fn what_cannot_be_flushed_is_an_error() {
        let (pipe, _end) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        assert!(BackgroundFlush::default().begin(&pipe).is_err());
    }
}
