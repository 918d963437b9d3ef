//! Eviction: which thresholds are crossed, the pressure that follows, what the node can free by
//! itself, and otherwise the one pod that has to go.
//!
//! - [`EvictionPolicy`]: the configured thresholds ([`EvictionSignal`], [`ThresholdValue`]).
//! - [`EvictionMonitor`]: from [`ResourceLevels`] to [`Pressure`] and [`Shortage`]s.
//! - [`FileSystemLayout`]: what the node frees first ([`NodeReclaim`]).
//! - [`MeasuringSchedule`]: when to measure again.
//! - [`choose`]: the pod to evict, with its texts.
//!
//! A round of the agent measures, observes, and handles the first shortage: the node frees what it
//! can, measures again, and only if [`EvictionPolicy::has_shortage`] still holds one pod is chosen.
//!
//! Source of the rules: `pkg/kubelet/eviction` of Kubernetes 1.36.

mod choice;
mod headroom;
mod layout;
mod levels;
mod message;
mod monitor;
mod policy;
mod pressure;
mod rank;
mod schedule;
mod signal;
mod usage;
mod value;

#[cfg(test)]
mod tests;

pub use choice::{EvictionChoice, PodEviction, choose};
pub use layout::{FileSystemLayout, NodeReclaim};
pub use levels::{FileSystem, ResourceLevel, ResourceLevels};
pub use message::{EVICTED, THRESHOLD_MET, threshold_met};
pub use monitor::{EvictionMonitor, EvictionRound, Shortage};
pub use policy::{
    EvictionPolicy, EvictionPolicyError, EvictionTexts, EvictionThreshold, IMMEDIATE_GRACE,
};
pub use pressure::Pressure;
pub use schedule::MeasuringSchedule;
pub use signal::{EvictionSignal, StarvedResource};
pub use usage::{ContainerUsage, DiskUsage, EvictionCandidate, PodUsage, VolumeUsage};
pub use value::{ThresholdError, ThresholdValue};
