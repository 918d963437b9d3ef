//! Processes that no cgroup has taken yet.

use std::{fs, io, path::PathBuf};

use super::CgroupFs;

/// Why the processes of the root cgroup can't be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list the processes in {}", file.display())]
pub struct RootProcessesError {
    file: PathBuf,
    source: io::Error,
}

impl CgroupFs {
    /// PIDs of the processes in the root cgroup itself, in no order, without kernel threads and the
    /// first process. With version 1 the root of the devices controller counts.
    ///
    /// Source: `ensureSystemCgroups` and `GetPids` of Kubernetes 1.36, `pkg/kubelet/cm`.
    ///
    /// # Errors
    /// The processes can't be listed.
    pub fn root_processes(&self) -> Result<Vec<i32>, RootProcessesError> {
        const FIRST: i32 = 1;
        let mut hierarchies = self.hierarchies.iter();
        let devices = hierarchies.find(|hierarchy| hierarchy.has("devices"));
        let Some(hierarchy) = devices.or(self.hierarchies.first()) else {
            return Ok(Vec::new());
        };
        let file = hierarchy.mount.join("cgroup.procs");
        let text = fs::read_to_string(&file);
        let text = text.map_err(|source| RootProcessesError { file, source })?;
        let pids = text.lines().filter_map(|line| line.parse::<i32>().ok());
        Ok(pids
            // 0: not visible in this PID namespace.
            .filter(|pid| *pid > FIRST && !is_kernel_thread(*pid))
            .collect())
    }
}

/// Only kernel threads have no program. One that has exited counts as one.
fn is_kernel_thread(pid: i32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe"))
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::CgroupFs;

    #[test]
    fn kernel_threads_and_the_first_process_are_left_out() {
        let mount = tempfile::tempdir().unwrap();
        let cgroups = CgroupFs::from_mounts(mount.path(), true, &[]).unwrap();
        let error = cgroups.root_processes().unwrap_err().to_string();
        assert!(error.ends_with("/cgroup.procs"), "{error}");

        let own = i32::try_from(std::process::id()).unwrap();
        // No process has the highest possible PID.
        let text = format!("0\n1\n{own}\n4194304\n");
        fs::write(mount.path().join("cgroup.procs"), text).unwrap();
        assert_eq!(cgroups.root_processes().unwrap(), [own]);
    }
}
