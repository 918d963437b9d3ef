//! The result of an admission, and what it depends on.

use rubelet_node_state::cluster_view::{Preemption, Rejection};

use crate::records::PodRecord;

/// Why a pod does not start.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It fails permanently.
    Rejected(Rejection),
    /// It waits for pods that are ending, or that the API server has not listed yet.
    Waits,
    /// It waits for these, which must be notified.
    Preempts(Preemption),
}

/// What was recorded of a pod before.
pub(super) struct RestoredPod {
    /// What its task continues from.
    pub(super) record: Option<PodRecord>,
    /// It was taken in at an earlier time.
    pub(super) was_admitted: bool,
}
