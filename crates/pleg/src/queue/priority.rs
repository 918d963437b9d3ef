//! The order of pods that wait for a slot.

use std::time::Duration;

/// The priority of an inspection, in ascending order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// A relist differs, or a state is checked again: no task waits for it.
    #[default]
    Reconcile,
    /// The pod has changed.
    Change,
    /// A container has exited, and may have to be restarted.
    Stopped,
    /// The pod's task can't continue without it.
    Waiting,
}

impl Priority {
    /// The delay of a pod relative to one that was queued at the same time with the highest
    /// priority. The higher priority comes first, and no pod starves.
    pub(crate) fn handicap(self) -> Duration {
        Duration::from_secs(match self {
            Self::Waiting => 0,
            Self::Stopped => 1,
            Self::Change => 5,
            Self::Reconcile => 30,
        })
    }
}
