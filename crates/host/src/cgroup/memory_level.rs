//! Notifications of cgroup version 1 that the memory of the machine has reached a level.
//!
//! Source: "Memory thresholds" in `Documentation/admin-guide/cgroup-v1/memory.rst` of the kernel.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::fd::{AsRawFd as _, OwnedFd},
    path::PathBuf,
};

use rustix::event::{EventfdFlags, eventfd};
use tokio::io::{Interest, unix::AsyncFd};

use super::CgroupFs;

const USAGE: &str = "memory.usage_in_bytes";
const CONTROL: &str = "cgroup.event_control";

/// The memory that the root cgroup of version 1 counts: that of all processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLevel {
    directory: PathBuf,
}

impl CgroupFs {
    /// The level of the machine's memory; `None` with version 2, which reports none, and without the controller.
    #[must_use]
    pub fn memory_level(&self) -> Option<MemoryLevel> {
        let hierarchy = self.hierarchies.iter().find(|one| one.has("memory"))?;
        let directory = hierarchy.mount.clone();
        Some(MemoryLevel { directory })
    }
}

impl MemoryLevel {
    /// Resolves when `headroom` bytes more than now are used. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The kernel refuses the notification: kernels may be built without it.
    pub async fn reached(&self, headroom: u64) -> io::Result<()> {
        let event = self.register(headroom)?;
        event.ready(Interest::READABLE).await?.retain_ready();
        Ok(())
    }

    /// A notification, which ends with the descriptor.
    fn register(&self, headroom: u64) -> io::Result<AsyncFd<OwnedFd>> {
        let mut usage = File::open(self.directory.join(USAGE))?;
        let mut used = String::new();
        usage.read_to_string(&mut used)?;
        let used: u64 = used.trim().parse().map_err(io::Error::other)?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (of_event, of_usage) = (event.as_raw_fd(), usage.as_raw_fd());
        let level = used.saturating_add(headroom);
        fs::write(
            self.directory.join(CONTROL),
            format!("{of_event} {of_usage} {level}"),
        )?;
        #[expect(
            deprecated,
            reason = "its unsafe successor asks for what an OwnedFd guarantees"
        )]
        AsyncFd::with_interest(event, Interest::READABLE)
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;

    fn of_machine() -> Option<MemoryLevel> {
        CgroupFs::detect(Path::new("/sys/fs/cgroup"))
            .ok()?
            .memory_level()
    }

    #[test]
    fn version_2_has_none() {
        let mount = tempfile::tempdir().unwrap();
        let cgroups = CgroupFs::from_mounts(mount.path(), true, &[]).unwrap();
        assert_eq!(cgroups.memory_level(), None);
    }

    #[tokio::test]
    async fn a_level_that_is_reached_is_reported_and_another_one_not() {
        let registered = |headroom| of_machine()?.register(headroom).ok();
        let (Some(far), Some(near)) = (registered(u64::MAX), registered(16 << 20)) else {
            // Version 2, no root, or a kernel without these notifications.
            return;
        };
        let taken = vec![1_u8; 256 << 20];
        tokio::select! {
            reached = far.ready(Interest::READABLE) => panic!("{reached:?}"),
            reached = near.ready(Interest::READABLE) => drop(reached.unwrap()),
            () = tokio::time::sleep(Duration::from_secs(60)) => panic!("not reported"),
        }
        assert_eq!(taken.last(), Some(&1));
    }
}
