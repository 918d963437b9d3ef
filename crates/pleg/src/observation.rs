//! The latest observation of a pod.

use std::sync::Arc;

use rubelet_base::Seq;
use rubelet_pod_plan::ObservedPod;

/// The result of the last inspection of a pod.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Sequence number of the inspection, taken before its first call.
    pub seq: Seq,
    /// State of the pod's sandboxes and containers.
    pub pod: Arc<ObservedPod>,
    /// Error of the last attempt to inspect; `pod` is then older than that attempt.
    pub error: Option<Arc<str>>,
}
