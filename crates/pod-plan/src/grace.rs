//! The arithmetic of a container's termination: when SIGKILL is due, which timeout a runtime that
//! counts in whole seconds gets, and who waits for whom. Times count from the moment at which the
//! termination was ordered.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::step::KillOrder;

/// The shortest time between SIGTERM and SIGKILL (kubelet: `minimumGracePeriodInSeconds`).
pub const MINIMUM_GRACE: Duration = Duration::from_secs(2);

/// The shortest grace of a pod that ends as a whole: with less its hooks would not run (kubelet:
/// `calculateEffectiveGracePeriod`).
const MINIMUM_POD_GRACE: Duration = Duration::from_secs(1);

/// The grace of a pod that ends as a whole.
#[must_use]
pub fn of_pod(grace: Duration) -> Duration {
    grace.max(MINIMUM_POD_GRACE)
}

/// A timeout in whole seconds may be off by this much: less than the runtime's own delays.
const TOLERANCE: Duration = Duration::from_millis(10);

/// How much time a container has left to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KillClock {
    deadline: Duration,
    /// When SIGTERM was sent, and after how many seconds the runtime kills by itself.
    termed: Option<(Duration, u64)>,
}

impl KillClock {
    /// An end that is ordered now, with this grace.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        Self {
            deadline: grace,
            termed: None,
        }
    }

    /// Until when a preStop hook, or the wait for others, may last.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// From `now` on the grace is this one, if that is sooner over. A grace never grows.
    pub fn shrink(&mut self, now: Duration, grace: Duration) {
        self.deadline = self.deadline.min(now.saturating_add(grace));
    }

    /// The agent itself held the end up by that much: not at the container's expense.
    pub fn held_up(&mut self, by: Duration) {
        self.deadline = self.deadline.saturating_add(by);
    }

    /// SIGTERM is sent now. Returns the timeout for the runtime, in whole seconds: the one that is
    /// meant, or the next longer one.
    pub fn term(&mut self, now: Duration) -> i64 {
        let left = self.deadline.saturating_sub(now).max(MINIMUM_GRACE);
        // What is a trifle longer than whole seconds is those.
        let shorter = left - TOLERANCE;
        let part = u64::from(shorter.subsec_nanos() > 0);
        let seconds = shorter.as_secs().saturating_add(part);
        self.termed = Some((now, seconds));
        i64::try_from(seconds).unwrap_or(i64::MAX)
    }

    /// When the runtime must be called to kill at once, because its own timeout ends too late.
    #[must_use]
    pub fn cut_at(&self) -> Option<Duration> {
        let (at, seconds) = self.termed?;
        let due = self.deadline.max(at.saturating_add(MINIMUM_GRACE));
        let by_itself = at.saturating_add(Duration::from_secs(seconds));
        (due.saturating_add(TOLERANCE) < by_itself).then_some(due)
    }
}

impl KillOrder {
    /// True if a container with this turn gets SIGTERM only after one with the other turn has
    /// ended: sidecars after regular containers and later sidecars.
    #[must_use]
    pub fn waits_for(self, other: Self) -> bool {
        match (self, other) {
            (Self::Sidecar(_), Self::Regular) => true,
            (Self::Sidecar(place), Self::Sidecar(other)) => other > place,
            _ => false,
        }
    }
}
