//! What the runtime reports of itself.

use std::sync::Arc;

use rubelet_base::cgroup::CgroupDriver;

/// The runtime as last seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuntimeState {
    /// Why the runtime can't be used; `None` when it is ready. Empty before the first answer.
    pub problem: Option<Arc<str>>,
    /// Why its network can't be used; `None` when it is ready.
    pub network_problem: Option<Arc<str>>,
    /// Its own name, such as `containerd`; before the first answer, the name that it reported to an
    /// earlier agent, or nothing.
    pub name: Arc<str>,
    /// Name and version, such as `containerd 2.1.9`.
    pub version: Arc<str>,
    /// The cgroup driver that it requests; `None` if it does not report one.
    pub cgroup_driver: Option<CgroupDriver>,
    /// True once it has answered.
    pub answered: bool,
    /// True while it does not answer: it may only be restarting.
    pub silent: bool,
    /// What its handlers can do, by name.
    pub handlers: Arc<[RuntimeHandler]>,
    /// Whether it supports `supplementalGroupsPolicy`; `None` if it does not report that.
    pub supplemental_groups_policy: Option<bool>,
}

/// A way of running sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuntimeHandler {
    /// Its name; empty for the runtime's default.
    pub name: Box<str>,
    /// Whether it can make mounts read-only with all that is mounted below.
    pub recursive_read_only_mounts: bool,
    /// Whether it can give pods user namespaces.
    pub user_namespaces: bool,
}

impl RuntimeState {
    /// True if pods can be worked on.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.answered && self.problem.is_none()
    }
}
