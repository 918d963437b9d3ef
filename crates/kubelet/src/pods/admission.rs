//! The inputs and the result of an admission.

use rubelet_node_plan::admission::Rejection;
use rubelet_node_state::cluster_view::Preemption;

use crate::records::PodRecord;

/// The reason why a pod is not admitted.
#[derive(Debug)]
pub(super) enum AdmitError {
    /// It is rejected permanently.
    Rejected(Rejection),
    /// It waits for pods that are terminating, or that the API server has not listed yet.
    WaitingForPods,
    /// It waits for these pods, which must be preempted.
    NeedsPreemption(Preemption),
}

/// The recorded state of a pod without a task.
pub(super) struct RestoredPod {
    /// The record that its task continues from.
    pub(super) record: Option<PodRecord>,
    /// True if it has a record here, or its status in the API server is past `Pending`.
    pub(super) was_admitted: bool,
}
