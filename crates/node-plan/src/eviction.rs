//! Eviction: signals and thresholds, the levels that they are compared with, and pressure.
//!
//! Source of the rules: `pkg/kubelet/eviction` of Kubernetes 1.36.

mod levels;
mod pressure;
mod signal;
mod value;

pub use levels::{FileSystem, ResourceLevel, ResourceLevels};
pub(crate) use pressure::LastShortages;
pub use pressure::Pressure;
pub use signal::{EvictionSignal, StarvedResource};
pub use value::{ThresholdError, ThresholdValue};
