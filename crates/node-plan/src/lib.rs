//! Node decisions: quality of service, cgroup names and values, resources of containers.
//!
//! - [`cgroup_tree`]: which cgroup belongs to which pod, for both drivers.
//! - [`cpu`], [`pod_resources`]: from requests and limits to the numbers of the kernel.
//! - [`tree_values`]: what each cgroup of the tree is limited to.
//! - [`critical`]: which pods the node can't do without.
//! - [`container_resources`], [`oom_score`]: what the runtime is told of one container.
//! - [`user_ranges`]: which users of the host stand for those of a pod.
//! - [`admission`]: whether a pod may run here.
//! - [`node_status`]: the node object, its conditions, and when they are sent.
//!
//! Pure: facts of the machine are arguments, results are values that others apply.

pub mod admission;
pub mod cgroup_tree;
pub mod container_resources;
pub mod cpu;
pub mod critical;
pub mod node_status;
pub mod oom_score;
pub mod pod_resources;
pub mod sysctl;
pub mod tree_values;
pub mod user_ranges;

#[cfg(test)]
mod test_pods;

pub use cgroup_tree::{CgroupDriver, CgroupNameError, CgroupRoot, CgroupTree};
pub use container_resources::{
    CgroupVersion, ContainerLimits, ContainerSettings, SwapBehavior, container_limits,
};
pub use oom_score::oom_score_adj;
pub use pod_resources::{memory_volume_bound, pod_memory_limit};
pub use sysctl::{SYSCTL_FORBIDDEN, SysctlError, check_sysctls};
pub use tree_values::{
    KubepodsAmounts, PodSettings, kubepods_values, lifted_limits, pod_values, tier_values,
};
pub use user_ranges::{NoUsersLeft, UserRanges, UserSettings};
