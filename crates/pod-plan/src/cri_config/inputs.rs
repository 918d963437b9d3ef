//! What the configuration of a container depends on beside its specification.

use rubelet_api::security::UserRange;
use rubelet_base::ContainerId;
use rubelet_cri::v1;

/// The inputs of a container's configuration beside its specification.
#[derive(Debug, Clone)]
pub struct ContainerInputs {
    /// `metadata.attempt` and the restart count.
    pub restart_count: u32,
    /// The image as the runtime identifies it.
    pub image_id: String,
    /// The user of the image's configuration.
    pub image_user: ImageUser,
    /// The environment, resolved.
    pub env: Vec<(String, String)>,
    /// All mounts.
    pub mounts: Vec<v1::Mount>,
    /// Limits and shares in the kernel's units.
    pub resources: v1::LinuxContainerResources,
    /// True if containers without a profile get the runtime's default (`seccompDefault`).
    pub seccomp_default: bool,
    /// Directory of Localhost seccomp profiles.
    pub seccomp_root: String,
    /// The container whose PID namespace an ephemeral container joins.
    pub target: Option<ContainerId>,
    /// The pod's ID range, if it has a user namespace.
    pub users: Option<UserRange>,
    /// `/sys/devices/system/cpu/cpuN/thermal_throttle` of each processor that has it: masked
    /// in addition to the fixed paths.
    pub thermal_throttle: Vec<String>,
}

/// The user of an image's configuration, as the runtime reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageUser {
    /// Numeric user, if the image sets one.
    pub uid: Option<i64>,
    /// User name, if the image sets one.
    pub name: String,
}
