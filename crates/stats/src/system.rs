//! The cgroups of the node's own services, its "system containers".
//!
//! Source of the names: `SystemContainer...` in `k8s.io/kubelet/pkg/apis/stats/v1alpha1` of Kubernetes 1.36.

use std::path::PathBuf;

use jiff::Timestamp;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::{CgroupFs, listener};

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

    /// The cgroups that the services are in now. Services in the root have none. Does not wait for the runtime.
    pub(crate) fn find(&self, fs: &CgroupFs) -> Vec<(&'static str, CgroupPath)> {
        let own = i32::try_from(std::process::id()).ok();
        let kubelet = own.and_then(|pid| fs.of_process(pid));
        let runtime = match &self.runtime {
            RuntimeCgroup::None => None,
            RuntimeCgroup::Named(path) => Some(path.clone()),
            RuntimeCgroup::OfListener(socket) => {
                listener::process_at(socket).and_then(|pid| fs.of_process(pid))
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
