//! The state of one key in the queue.

use std::time::Duration;

use rubelet_base::Seq;
use tokio::time::Instant;

use super::{LatencyClass, Priority};

/// Shortest time between two inspections of a pod while its task executes steps.
const WHILE_BUSY: Duration = Duration::from_secs(1);

/// A key of the queue.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) state: WorkState,
    pub(super) class: LatencyClass,
    /// The highest priority of all causes since the last inspection began.
    pub(super) priority: Priority,
    /// True while the pod's task executes steps.
    pub(super) busy: bool,
    /// Start of the last inspection.
    pub(super) began_at: Option<Instant>,
}

/// What a key waits for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum WorkState {
    /// Nothing. A cause makes it ready.
    #[default]
    Idle,
    /// A free slot of its class. Then it runs, or is held if its task is busy.
    Ready {
        /// Its place among those that are ready.
        due: Instant,
    },
    /// The end of its task's steps. Each step marks its pod: one inspection after the last step
    /// shows the effects of all, so further causes do not make it ready.
    Held {
        /// When it is ready whether its task is busy or not.
        until: Instant,
    },
    /// A time. It is ready then, or with the next cause.
    Delayed {
        /// That time.
        at: Instant,
    },
    /// The end of its inspection, which decides what it waits for next.
    Running(RunningInspection),
}

/// An inspection in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunningInspection {
    /// The class of its slot.
    pub(super) slot: LatencyClass,
    /// The priority of its causes.
    pub(super) priority: Priority,
    /// The latest cause since it was started; `Seq::ZERO` if there is none.
    pub(super) cause: Seq,
    /// True if its pod was removed meanwhile. Causes are then those of a new pod with its UID.
    pub(super) forgotten: bool,
}

/// How an inspection ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InspectionOutcome {
    /// Its result counts, and shows the effect of every cause with a smaller number than `began`.
    Complete {
        /// The number of the inspection.
        began: Seq,
        /// When a state is read again that may change without an event.
        recheck_at: Option<Instant>,
    },
    /// Its result is not believed yet.
    Withheld {
        /// The number of the inspection.
        began: Seq,
        /// When it is believed.
        until: Instant,
    },
    /// It failed.
    Failed {
        /// When it is repeated, whether there is a newer cause or not.
        retry_at: Instant,
        /// True if it exceeded its deadline.
        hung: bool,
    },
    /// It became slow while no slot for slow ones was free.
    Aborted,
}

impl Work {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, WorkState::Running(_))
    }

    /// The time before which no inspection starts.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let began_at = self.began_at.filter(|_| self.busy);
        began_at.map(|at| at + WHILE_BUSY)
    }

    /// Ends the inspection in progress. Returns the time at which the next one is due.
    pub(super) fn end(
        &mut self,
        running: RunningInspection,
        outcome: InspectionOutcome,
        now: Instant,
    ) -> Option<Instant> {
        self.state = WorkState::Idle;
        if running.forgotten {
            return (running.cause > Seq::ZERO).then_some(now);
        }
        // Taken back where its causes are not handled yet.
        let priority = self.priority.max(running.priority);
        match outcome {
            InspectionOutcome::Complete { began, recheck_at } => {
                self.class = LatencyClass::Fast;
                if running.cause > began {
                    return Some(now);
                }
                // Causes after the start and before `began` are handled, too.
                self.priority = Priority::default();
                recheck_at
            }
            InspectionOutcome::Withheld { began, until } => {
                self.class = LatencyClass::Fast;
                self.priority = priority;
                Some(if running.cause > began { now } else { until })
            }
            InspectionOutcome::Failed { retry_at, hung } => {
                if hung {
                    self.class = LatencyClass::Hung;
                }
                self.priority = priority;
                Some(retry_at)
            }
            InspectionOutcome::Aborted => {
                self.class = self.class.max(LatencyClass::Slow);
                self.priority = priority;
                Some(now)
            }
        }
    }
}
