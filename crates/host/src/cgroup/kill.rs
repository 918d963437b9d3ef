//! Kills the processes of a cgroup. Each one is signaled through a pidfd that was opened while it
//! was in the cgroup, so that a reused PID harms no other process.

use std::{
    collections::BTreeSet,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{CgroupFs, child_dirs, own_processes, write::write_file};

/// Timeout of freezing processes before they are killed on version 1. Those that can't be frozen
/// can't fork either.
const STILL: Duration = Duration::from_millis(100);

/// Why the processes of a cgroup can't be killed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list the processes of the cgroup {}", dir.display())]
pub struct KillError {
    dir: PathBuf,
    source: io::Error,
}

impl CgroupFs {
    /// Sends SIGKILL to all processes of the cgroup and its descendants, frozen or not; returns how
    /// many there were, 0 if the cgroup does not exist. Processes that fork all the time can't
    /// escape where the kernel offers a way: `cgroup.kill` of version 2 (Linux 5.14), or the
    /// freezer of version 1.
    ///
    /// # Errors
    /// The processes can't be listed.
    pub fn kill(&self, path: &CgroupPath) -> Result<usize, KillError> {
        if self.layout == CgroupLayout::V2 {
            let count = self.processes(path)?.len();
            let file = self
                .controller_dir("cgroup", path)
                .map(|dir| dir.join("cgroup.kill"));
            if file.is_some_and(|file| write_file(&file, "1", None).is_ok()) {
                return Ok(count);
            }
            return self.kill_each(path);
        }
        // Without the freezer, or if some process can't be frozen, all visible ones are killed.
        let _ = self.freeze(path, STILL);
        let killed = self.kill_each(path);
        // A frozen process handles a signal only after a thaw, regardless of who froze it.
        let _ = self.thaw(path);
        killed
    }

    fn kill_each(&self, path: &CgroupPath) -> Result<usize, KillError> {
        let handles: Vec<(i32, OwnedFd)> = self
            .processes(path)?
            .into_iter()
            .filter_map(|pid| {
                let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
                Some((pid, handle))
            })
            .collect();
        let still = self.processes(path)?;
        let victims = handles.iter().filter(|(pid, _)| still.contains(pid));
        // It may have exited in between.
        let killed = victims.filter(|(_, handle)| pidfd_send_signal(handle, Signal::KILL).is_ok());
        Ok(killed.count())
    }

    /// PIDs of all processes in the cgroup and its descendants; none if it does not exist.
    ///
    /// # Errors
    /// The processes can't be listed.
    pub fn processes(&self, path: &CgroupPath) -> Result<BTreeSet<i32>, KillError> {
        let mut found = BTreeSet::new();
        for hierarchy in &self.hierarchies {
            let dir = hierarchy.dir(path);
            collect(&dir, &mut found).map_err(|source| KillError { dir, source })?;
        }
        Ok(found)
    }

    /// As [`Self::processes`], without those of cgroups that can't be read: a threaded one lists none.
    #[must_use]
    pub fn readable_processes(&self, path: &CgroupPath) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        for hierarchy in &self.hierarchies {
            // The others are found whatever it was.
            let _ = collect(&hierarchy.dir(path), &mut found);
        }
        found
    }
}

/// Reads all that can be read; returns the first error.
fn collect(dir: &Path, found: &mut BTreeSet<i32>) -> io::Result<()> {
    let own = own_processes(dir).map(|own| found.extend(own));
    let children = child_dirs(dir).and_then(|children| {
        let each = children.iter().map(|child| collect(child, found));
        each.fold(Ok(()), Result::and)
    });
    own.and(children)
}
