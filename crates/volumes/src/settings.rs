//! Facts that volumes depend on.

use rubelet_api::{downward::Allocatable, resources::Bytes};

/// Facts that volumes depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeSettings {
    /// Maximum size in bytes of an `emptyDir` in memory of this pod: the lower of the limits of the
    /// pod and of all pods of the node.
    pub memory_bound: Bytes,
    /// The node's allocatable resources, for the downward API.
    pub allocatable: Allocatable,
    /// Whether the kernel counts what volumes use, where it can.
    pub quotas: VolumeQuotas,
}

/// Whether volumes on disk have project quotas, where the file system can have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeQuotas {
    /// They have.
    On,
    /// The feature gate `LocalStorageCapacityIsolationFSQuotaMonitoring` is off.
    GateOff,
    /// `localStorageCapacityIsolation` is false.
    NotAccounted,
}
