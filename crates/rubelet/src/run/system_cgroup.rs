//! `systemCgroups`: keeps the processes that are in no cgroup in one that an operator may limit.
//!
//! Source: `ensureSystemCgroups` of Kubernetes 1.36, `pkg/kubelet/cm/container_manager_linux.go`.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use rubelet_base::ErrorChain;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::{CgroupFs, cgroup::CgroupTarget};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::{debug, warn};

use super::node::configured_cgroup;

/// Time between two looks for new processes.
const PERIOD: Duration = Duration::from_secs(60);
/// How often the processes are listed in one look: those that are listed may fork.
const ATTEMPTS: usize = 11;

/// The cgroup of the machine's own processes.
pub(super) struct SystemCgroup {
    cgroups: CgroupFs,
    target: CgroupTarget,
    path: CgroupPath,
}

impl SystemCgroup {
    /// Creates the cgroup, if it does not exist; `None` without a name.
    ///
    /// # Errors
    /// The name is not one of a cgroup, or the kernel refuses.
    pub(super) fn create(name: &str, cgroups: &CgroupFs) -> anyhow::Result<Option<Self>> {
        let Some(path) = configured_cgroup("systemCgroups", name)? else {
            return Ok(None);
        };
        let target = cgroups
            .create(&path)
            .with_context(|| format!("systemCgroups: cannot create the cgroup {path}"))?;
        Ok(Some(Self {
            cgroups: cgroups.clone(),
            target,
            path,
        }))
    }

    /// Moves all processes of the root cgroup into it, now and every minute, for ever.
    pub(super) async fn keep(self) {
        let this = Arc::new(self);
        loop {
            let gathering = Arc::clone(&this);
            // It fails only when the agent stops.
            let _ = spawn_blocking(move || gathering.gather()).await;
            sleep(PERIOD).await;
        }
    }

    fn gather(&self) {
        let mut last_error = None;
        for _ in 0..ATTEMPTS {
            let pids = match self.cgroups.root_processes() {
                Ok(pids) if pids.is_empty() => return,
                Ok(pids) => pids,
                Err(error) => {
                    warn!(error = %ErrorChain(&error), "systemCgroups");
                    return;
                }
            };
            debug!(?pids, cgroup = %self.path, "Moving processes");
            last_error = None;
            for pid in pids {
                if let Err(error) = self.target.add(pid) {
                    last_error = Some((pid, error));
                }
            }
        }
        if let Some((pid, error)) = last_error {
            warn!(pid, cgroup = %self.path, %error, "Cannot move a process");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_no_cgroup_for_processes() {
        let mount = tempfile::tempdir().unwrap();
        let cgroups = CgroupFs::from_mounts(mount.path(), true, &[]).unwrap();
        assert!(SystemCgroup::create("", &cgroups).unwrap().is_none());
        let error = SystemCgroup::create("/", &cgroups).err().unwrap();
        let error = format!("{error:#}");
        assert!(error.starts_with("systemCgroups: "), "{error}");
    }
}
