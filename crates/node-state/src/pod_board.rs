//! The board of pods: the published state of each, for the API server, the socket and metrics.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::PodUid;
use rubelet_pod_plan::{History, PlanReason, VolumeState};

use crate::board::Board;

/// Statuses by UID.
pub type PodBoard = Board<PodUid, PodEntry>;

/// The published state of a pod.
#[derive(Debug, Clone)]
pub struct PodEntry {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Its status.
    pub status: PodStatus,
    /// The start of its removal, and the grace period.
    pub deletion: Option<(Timestamp, Duration)>,
    /// The reasons of the last plan.
    pub why: Vec<PlanReason>,
    /// Past attempts and their results.
    pub history: Arc<History>,
    /// The time of the next plan if nothing changes.
    pub wake_at: Option<Timestamp>,
    /// True if nothing of the pod is left on this node; the entry stays while its source lists it.
    pub finished: bool,
}

impl PodEntry {
    /// True if no container of the pod will run any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.finished || self.status.phase.is_terminal()
    }

    /// True if the pod holds nothing any more that another pod may need, such as volumes in memory
    /// (kubelet: `PodResourcesAreReclaimed`).
    #[must_use]
    pub fn has_released(&self) -> bool {
        self.finished || self.has_ended() && self.history.volumes != VolumeState::Made
    }
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
