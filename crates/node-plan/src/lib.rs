//! Node decisions: quality of service, cgroups of pods, resources of containers.
//!
//! - [`cgroup_tree`]: the cgroups of pods, for both drivers.
//! - [`pod_resources`]: the requests and limits of a whole pod.
//! - [`tree_values`]: the limits of each cgroup of the tree.
//! - [`node_allocatable`]: the limits of all pods together, and of what the reservations are for.
//! - [`kernel_settings`]: what is required of the kernel.
//! - [`memory_qos`]: memory that is protected, and containers that are slowed down.
//! - [`cpu_list`]: sets of CPUs.
//! - [`critical`]: critical pods.
//! - [`container_resources`], [`oom_score`]: the resources of one container for the runtime.
//! - [`user_ranges`]: the host ID ranges of the pods' user namespaces.
//! - [`image_collection`]: garbage collection of unused images.
//! - [`host_port`]: conflicts of host ports.
//! - [`admission`]: admission and preemption of pods.
//! - [`local_storage`]: limits of local storage, and when pods are measured for them.
//! - [`system_oom`], [`container_oom`]: the kernel's messages about a machine without memory, and about containers.
//! - [`eviction`]: thresholds, pressure, and the pod to evict.
//! - [`node_shutdown`]: the order in which pods end when the node shuts down.
//! - [`node_status`]: the node object, its conditions, and when they are sent.
//!
//! Pure: this crate never reads the machine or a clock, and never changes anything. Facts are
//! arguments, results are values that the caller applies.
//!
//! ```
//! use rubelet_api::resources::QosClass;
//! use rubelet_base::PodUid;
//! use rubelet_cgroup_plan::CgroupDriver;
//! use rubelet_node_plan::{CgroupRoot, CgroupTree};
//!
//! let root = CgroupRoot::parse("/").expect("the root of the hierarchy");
//! let tree = CgroupTree::new(&root, CgroupDriver::Systemd).expect("names of slices");
//! let pod = tree.pod(QosClass::Burstable, &PodUid::from("u1")).expect("a name");
//! assert!(pod.to_string().ends_with("kubepods-burstable-podu1.slice"));
//! ```

pub mod admission;
pub mod cgroup_tree;
pub mod container_oom;
pub mod container_resources;
pub mod cpu_list;
pub mod critical;
pub mod eviction;
pub mod host_port;
pub mod image_collection;
pub mod kernel_settings;
pub mod local_storage;
pub mod memory_qos;
pub mod node_allocatable;
pub mod node_shutdown;
pub mod node_status;
pub mod oom_score;
pub mod pod_resources;
pub mod sysctl;
pub mod system_oom;
pub mod tree_values;
pub mod user_ranges;

#[cfg(test)]
mod test_pods;

pub use cgroup_tree::{CgroupNameError, CgroupRoot, CgroupTree, existing_cgroup};
pub use container_resources::{ContainerLimits, ContainerSettings, SwapBehavior, container_limits};
pub use host_port::HostPort;
pub use oom_score::oom_score_adj;
pub use pod_resources::memory_volume_bound;
pub use sysctl::{SYSCTL_FORBIDDEN, SysctlError, check_sysctls};
pub use tree_values::{
    KubepodsAmounts, PodSettings, TierSettings, kubepods_values, lifted_limits, pod_values,
    tier_values,
};
pub use user_ranges::{DelegationError, UserRanges, UserRangesExhausted, UserSettings};
