//! The cgroups of the node's own services, its "system containers".
//!
//! Source of the names: `SystemContainer...` in `k8s.io/kubelet/pkg/apis/stats/v1alpha1` of Kubernetes 1.36.

use std::path::PathBuf;

use jiff::Timestamp;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::CgroupFs;
use tokio::net::UnixStream;

/// The agent.
pub(crate) const KUBELET: &str = "kubelet";
const RUNTIME: &str = "runtime";
const MISC: &str = "misc";
/// All pods.
pub(crate) const PODS: &str = "pods";

/// Where the node's own services are.
#[derive(Debug, Clone)]
pub struct SystemCgroups {
    /// When the agent was started.
    pub started_at: Timestamp,
    /// The runtime.
    pub runtime: RuntimeCgroup,
    /// `systemCgroups`, which has all other processes.
    pub misc: Option<CgroupPath>,
}

/// The cgroup of the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuntimeCgroup {
    /// It has none of its own: it is in this process.
    None,
    /// `--runtime-cgroups`.
    Named(CgroupPath),
    /// That of the process that listens at this socket.
    OfListener(PathBuf),
}

impl SystemCgroups {
    /// Those of an agent whose runtime is in its process, without `systemCgroups`.
    #[must_use]
    pub fn of_agent(started_at: Timestamp) -> Self {
        Self {
            started_at,
            runtime: RuntimeCgroup::None,
            misc: None,
        }
    }

    /// The process of a runtime whose cgroup has to be looked for. Does not wait for the runtime.
    pub(crate) async fn runtime_process(&self) -> Option<i32> {
        let RuntimeCgroup::OfListener(socket) = &self.runtime else {
            return None;
        };
        let stream = UnixStream::connect(socket).await.ok()?;
        // The first process listens for services that it starts; one of another PID namespace has no number.
        stream.peer_cred().ok()?.pid().filter(|pid| *pid > 1)
    }

    /// The cgroups that the services are in now. Services in the root have none.
    pub(crate) fn find(
        &self,
        fs: &CgroupFs,
        runtime_process: Option<i32>,
    ) -> Vec<(&'static str, CgroupPath)> {
        let own = i32::try_from(std::process::id()).ok();
        let kubelet = own.and_then(|pid| fs.of_process(pid));
        let runtime = match &self.runtime {
            RuntimeCgroup::Named(path) => Some(path.clone()),
            RuntimeCgroup::None | RuntimeCgroup::OfListener(_) => {
                runtime_process.and_then(|pid| fs.of_process(pid))
            }
        };
        let named = [
            (KUBELET, kubelet),
            (RUNTIME, runtime),
            (MISC, self.misc.clone()),
        ];
        let found = named.into_iter();
        found
            .filter_map(|(name, path)| Some((name, path?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn the_process_behind_the_socket_is_found_and_a_file_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let system = SystemCgroups {
            runtime: RuntimeCgroup::OfListener(path.clone()),
            ..SystemCgroups::of_agent(Timestamp::UNIX_EPOCH)
        };
        assert_eq!(system.runtime_process().await, None);
        let listener = UnixListener::bind(&path).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(system.runtime_process().await, Some(own));
        drop(listener);
        assert_eq!(system.runtime_process().await, None);
    }
}
