//! Rounds of a pod's task: their kinds and durations, for metrics.

use rubelet_node_state::metrics::{PodMetrics, SyncKind};
use rubelet_pod_plan::Target;
use tokio::time::Instant;

/// The round that a pod's task is in.
pub(super) struct SyncRound {
    woken: Instant,
    kind: SyncKind,
}

impl SyncRound {
    /// The first one of a task.
    pub(super) fn first() -> Self {
        Self {
            woken: Instant::now(),
            kind: SyncKind::Create,
        }
    }

    /// Something that was waited for has come.
    pub(super) fn woken(&mut self) {
        self.woken = Instant::now();
    }

    /// The pod was edited. The first round of a task stays the first.
    pub(super) fn edited(&mut self) {
        if self.kind == SyncKind::Sync {
            self.kind = SyncKind::Update;
        }
    }

    /// The round has ended, and so has the task if nothing of the pod is left. The next one begins.
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
