//! The board of pods: what this node publishes of each, for the API server, the socket and metrics.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::PodUid;
use rubelet_pod_plan::{History, Why};

use crate::board::Board;

/// Statuses by UID.
pub type PodBoard = Board<PodUid, PodEntry>;

/// What is published of a pod.
#[derive(Debug, Clone)]
pub struct PodEntry {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Its status.
    pub status: PodStatus,
    /// When its removal began, and with which grace.
    pub deletion: Option<(Timestamp, Duration)>,
    /// Why the last plan was what it was.
    pub why: Vec<Why>,
    /// What was tried, and the result.
    pub history: Arc<History>,
    /// When the next plan is due even if nothing changes.
    pub wake_at: Option<Timestamp>,
    /// Nothing of the pod is left on this node; it stays here as long as its source lists it.
    pub finished: bool,
}

impl PartialEq for PodEntry {
    fn eq(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.pod, &other.pod) || self.pod == other.pod)
            && self.status == other.status
            && self.deletion == other.deletion
            && self.why == other.why
            && self.history == other.history
            && self.wake_at == other.wake_at
            && self.finished == other.finished
    }
}
