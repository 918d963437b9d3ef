//! Kinds and durations of the rounds of a pod's task, for metrics.

use rubelet_node_state::metrics::{PodMetrics, SyncKind};
use rubelet_pod_plan::Target;
use tokio::time::Instant;

/// The current round of a pod's task.
pub(super) struct SyncRound {
    woken: Instant,
    kind: SyncKind,
}

impl SyncRound {
    /// The first round of a task.
    pub(super) fn first() -> Self {
        Self {
            woken: Instant::now(),
            kind: SyncKind::Create,
        }
    }

    /// Restarts the duration: the task was woken.
    pub(super) fn woken(&mut self) {
        self.woken = Instant::now();
    }

    /// Notes an edit of the pod. The kind of the first round does not change.
    pub(super) fn edited(&mut self) {
        if self.kind == SyncKind::Sync {
            self.kind = SyncKind::Update;
        }
    }

    /// Ends the round and begins the next one. `is_last`: nothing of the pod is left.
    pub(super) fn ended(&mut self, metrics: &PodMetrics, target: Target, is_last: bool) {
        let kind = match target {
            _ if is_last => SyncKind::Terminated,
            Target::Remove { .. } => SyncKind::Kill,
            Target::Run => self.kind,
        };
        metrics.synced(kind, self.woken.elapsed());
        self.kind = SyncKind::Sync;
        self.woken();
    }
}
