//! Notifications that processes of this machine wait for memory: a trigger of pressure stall
//! information, see `Documentation/accounting/psi.rst` of the kernel.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::fd::OwnedFd,
};

use tokio::io::{Interest, unix::AsyncFd};

const FILE: &str = "/proc/pressure/memory";

/// Triggers by preference: some process waits for memory for this part of a window, both in
/// microseconds. Without CAP_SYS_RESOURCE a window must be a multiple of two seconds (since Linux
/// 6.5; before that there is no trigger without it). The kernel replaces the last byte by a NUL.
const TRIGGERS: [&str; 2] = ["some 70000 1000000\0", "some 140000 2000000\0"];

/// A trigger; it exists as long as this value.
#[derive(Debug)]
pub struct MemoryStall(AsyncFd<OwnedFd>);

impl MemoryStall {
    /// Starts to watch. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The kernel has no pressure stall information, or refuses triggers to this process.
    pub fn watch() -> io::Result<Self> {
        let mut refused = None;
        for trigger in TRIGGERS {
            // A file can hold one trigger.
            let mut file = open()?;
            match file.write_all(trigger.as_bytes()) {
                Ok(()) => {
                    #[expect(
                        deprecated,
                        reason = "its unsafe successor asks for what an OwnedFd guarantees"
                    )]
                    let fd = AsyncFd::with_interest(OwnedFd::from(file), Interest::PRIORITY)?;
                    return Ok(Self(fd));
                }
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| io::Error::other("no trigger")))
    }

    /// Resolves when processes have waited for memory since the last call, at most once in a window.
    ///
    /// # Errors
    /// The tokio runtime shuts down.
    pub async fn stalled(&self) -> io::Result<()> {
        let mut ready = self.0.ready(Interest::PRIORITY).await?;
        // The kernel resets the trigger when it reports it.
        ready.clear_ready();
        Ok(())
    }
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(FILE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_trigger_that_the_kernel_allows_is_silent_on_a_machine_with_memory() {
        let Ok(stall) = MemoryStall::watch() else {
            // Depends on the kernel and on capabilities; the agent measures instead.
            return;
        };
        // Whatever the load of the machine: the first answer is not an error.
        let waited = tokio::time::timeout(Duration::from_millis(10), stall.stalled()).await;
        assert!(waited.is_err() || waited.is_ok_and(|rang| rang.is_ok()));
    }
}
