//! Critical pods.

use rubelet_api::pod::{Pod, PodSource};

/// The lowest priority of the classes `system-cluster-critical` and `system-node-critical`.
pub(crate) const SYSTEM_CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// True for pods that are never evicted and never swap. Static pods are critical regardless of
/// their priority.
#[must_use]
pub fn is_critical(pod: &Pod) -> bool {
    pod.source != PodSource::Api || pod.spec.priority >= SYSTEM_CRITICAL_PRIORITY
}

/// True for pods with the priority of `system-node-critical`: the OOM killer kills these last.
#[must_use]
pub(crate) fn is_node_critical(pod: &Pod) -> bool {
    is_critical(pod) && pod.spec.priority_class.as_deref() == Some("system-node-critical")
}
