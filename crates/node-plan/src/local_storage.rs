//! Limits of local storage: which a pod has, which it exceeds, and when to measure it again.
//!
//! - [`StorageLimits`]: `emptyDir.sizeLimit` on disk, and `limits.ephemeral-storage` of containers.
//! - [`exceeded`]: the limit that a pod exceeds, with the text of its eviction.
//! - [`StorageSchedule`]: when pods are measured.
//!
//! Source of the rules: `localStorageEviction` in `pkg/kubelet/eviction` of Kubernetes 1.36. The schedule
//! is Rubelet's: the kubelet measures each 10 s, volumes each minute.

mod excess;
mod limits;
mod schedule;

#[cfg(test)]
mod tests;

pub use excess::{ExceededLimit, StorageLimitKind, exceeded, headroom};
pub use limits::StorageLimits;
pub use schedule::{StorageMeasurement, StorageSchedule};
