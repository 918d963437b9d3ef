//! Kills what runs in a cgroup. A process is hit through a handle that was taken while it was in the
//! cgroup, so that a process id which was given to another process meanwhile harms nobody.

use std::{
    collections::BTreeSet,
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rubelet_base::cgroup::CgroupPath;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{CgroupFs, child_dirs, is_gone};

/// Why the processes of a cgroup can't be killed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list the processes of the cgroup {}", dir.display())]
pub struct KillError {
    dir: PathBuf,
    source: io::Error,
}

impl CgroupFs {
    /// Sends SIGKILL to all processes of the cgroup and of those within it, once; how many there
    /// were. None if the cgroup isn't there.
    ///
    /// # Errors
    /// The processes can't be listed.
    pub fn kill(&self, path: &CgroupPath) -> Result<usize, KillError> {
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
        // It may have ended by itself in between.
        let killed = victims.filter(|(_, handle)| pidfd_send_signal(handle, Signal::KILL).is_ok());
        Ok(killed.count())
    }

    fn processes(&self, path: &CgroupPath) -> Result<BTreeSet<i32>, KillError> {
        let mut found = BTreeSet::new();
        for hierarchy in &self.hierarchies {
            let dir = hierarchy.dir(path);
            collect(&dir, &mut found).map_err(|source| KillError { dir, source })?;
        }
        // The kernel writes 0 for processes that this one can't see.
        found.remove(&0);
        Ok(found)
    }
}

fn collect(dir: &Path, found: &mut BTreeSet<i32>) -> io::Result<()> {
    match fs::read_to_string(dir.join("cgroup.procs")) {
        Ok(text) => found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok())),
        Err(error) if is_gone(&error) => {}
        Err(error) => return Err(error),
    }
    for child in child_dirs(dir)? {
        collect(&child, found)?;
    }
    Ok(())
}
