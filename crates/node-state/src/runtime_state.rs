//! The status that the runtime reports.

use std::sync::Arc;

use rubelet_cgroup_plan::CgroupDriver;

/// The last known status of the runtime.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuntimeState {
    /// Why the runtime is not ready; `None` if it is. Empty before the first response.
    pub problem: Option<Arc<str>>,
    /// Why its network is not ready; `None` if it is.
    pub network_problem: Option<Arc<str>>,
    /// Its own name, such as `containerd`; before the first response, the name that it reported to
    /// an earlier process of the agent, or empty.
    pub name: Arc<str>,
    /// Name and version, such as `containerd 2.1.9`.
    pub version: Arc<str>,
    /// The cgroup driver that it requests; `None` if it does not report one.
    pub cgroup_driver: Option<CgroupDriver>,
    /// True once it has responded.
    pub answered: bool,
    /// True while it does not respond: it may only be restarting.
    pub silent: bool,
    /// The features of its handlers, by name.
    pub handlers: Arc<[RuntimeHandler]>,
    /// Whether it supports `supplementalGroupsPolicy`; `None` if it does not report that.
    pub supplemental_groups_policy: Option<bool>,
}

/// A runtime handler (CRI: `RuntimeHandler`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuntimeHandler {
    /// Its name; empty for the runtime's default.
    pub name: Box<str>,
    /// True if it supports recursive read-only mounts.
    pub recursive_read_only_mounts: bool,
    /// True if it supports user namespaces.
    pub user_namespaces: bool,
}

impl RuntimeState {
    /// True if the runtime is ready for pods.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.answered && self.problem.is_none()
    }
}
