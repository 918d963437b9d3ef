//! Deadlines of terminating containers: when SIGKILL is due, the timeout for a runtime that counts
//! in whole seconds, and the order of containers. Times count from the start of the termination.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::step::KillOrder;

/// The shortest time between SIGTERM and SIGKILL (kubelet: `minimumGracePeriodInSeconds`).
pub(crate) const MINIMUM_GRACE: Duration = Duration::from_secs(2);

/// The shortest grace period of a terminating pod: with less, its hooks would not run (kubelet:
/// `calculateEffectiveGracePeriod`).
const MINIMUM_POD_GRACE: Duration = Duration::from_secs(1);

/// The effective grace period of a terminating pod.
#[must_use]
pub fn of_pod(grace: Duration) -> Duration {
    grace.max(MINIMUM_POD_GRACE)
}

/// Rounding tolerance of a timeout in whole seconds; less than the runtime's own delays.
const TOLERANCE: Duration = Duration::from_millis(10);

/// The deadline of a terminating container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraceDeadline {
    deadline: Duration,
    /// When SIGTERM was sent, and the number of seconds after which the runtime sends SIGKILL.
    sigterm: Option<(Duration, u64)>,
}

impl GraceDeadline {
    /// A termination that starts now, with this grace period.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        Self {
            deadline: grace,
            sigterm: None,
        }
    }

    /// The latest end of the preStop hook and of the wait for other containers.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Applies a grace period that starts at `now`, if it ends earlier. A grace period never grows.
    pub fn shrink(&mut self, now: Duration, grace: Duration) {
        self.deadline = self.deadline.min(now.saturating_add(grace));
    }

    /// Extends the deadline by a delay that the agent itself caused: it must not shorten the
    /// container's grace period.
    pub fn extend(&mut self, by: Duration) {
        self.deadline = self.deadline.saturating_add(by);
    }

    /// Notes that SIGTERM is sent now. Returns the timeout for the runtime, rounded up to whole
    /// seconds.
    pub fn term(&mut self, now: Duration) -> i64 {
        let left = self.deadline.saturating_sub(now).max(MINIMUM_GRACE);
        // Within the tolerance it is rounded down.
        let shorter = left - TOLERANCE;
        let part = u64::from(shorter.subsec_nanos() > 0);
        let seconds = shorter.as_secs().saturating_add(part);
        self.sigterm = Some((now, seconds));
        i64::try_from(seconds).unwrap_or(i64::MAX)
    }

    /// When the runtime must be told to kill at once; `None` if its own timeout is early enough.
    #[must_use]
    pub fn early_kill_at(&self) -> Option<Duration> {
        let (at, seconds) = self.sigterm?;
        let due = self.deadline.max(at.saturating_add(MINIMUM_GRACE));
        let by_itself = at.saturating_add(Duration::from_secs(seconds));
        (due.saturating_add(TOLERANCE) < by_itself).then_some(due)
    }
}

impl KillOrder {
    /// True if a container of this order gets SIGTERM only after one of the `other` order has
    /// exited: sidecars after regular containers and after later sidecars.
    #[must_use]
    pub fn waits_for(self, other: Self) -> bool {
        match (self, other) {
            (Self::Sidecar(_), Self::Regular) => true,
            (Self::Sidecar(place), Self::Sidecar(other)) => other > place,
            _ => false,
        }
    }
}
