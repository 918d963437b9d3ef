//! The latest observation of a pod.

use std::sync::Arc;

use rubelet_base::Seq;
use rubelet_pod_plan::ObservedPod;

/// The result of the last inspection of a pod.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// When the inspection began, in this process's order.
    pub seq: Seq,
    /// What it saw.
    pub pod: Arc<ObservedPod>,
    /// Why the last try to inspect failed, if it did; `pod` is then older than that try.
    pub error: Option<Arc<str>>,
}
