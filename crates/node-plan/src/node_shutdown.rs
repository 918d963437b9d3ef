//! Graceful shutdown of the node: which pods end when, and how long each has.
//!
//! Source of the rules and words: `pkg/kubelet/nodeshutdown` of Kubernetes 1.36.

use std::{sync::Arc, time::Duration};

use rubelet_api::pod::Pod;

use crate::{admission::Rejection, critical::SYSTEM_CRITICAL_PRIORITY};

/// `status.reason` of a pod that ends because the node shuts down.
pub const TERMINATED: &str = "Terminated";
/// `status.message` of that pod, and the message of its condition.
pub const TERMINATED_MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";
/// `status.reason` of a pod that comes while the node shuts down, and the reason of its event.
pub const NODE_SHUTDOWN: &str = "NodeShutdown";
/// Why the node is not ready meanwhile.
pub const NOT_READY: &str = "node is shutting down";
/// Reason of the events about the node.
pub const SHUTDOWN: &str = "Shutdown";
/// Message of the event when a shutdown begins.
pub const DETECTED: &str = "Shutdown manager detected shutdown event";
/// Message of the event when it was cancelled.
pub const CANCELLED: &str = "Shutdown manager detected shutdown cancellation";

/// The rejection of such a pod.
#[must_use]
pub fn rejection() -> Rejection {
    Rejection {
        reason: NODE_SHUTDOWN.into(),
        message: "Pod was rejected as the node is shutting down.".into(),
    }
}

/// The pods of priorities from this one up to that of the next group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownGroup {
    /// The lowest priority.
    pub priority: i32,
    /// How long the shutdown is delayed for these pods, in whole seconds.
    pub period: Duration,
}

/// How long pods have when the node shuts down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutdownPolicy {
    /// By priority, the lowest first; at least one.
    groups: Vec<ShutdownGroup>,
}

/// A group of the policy and its pods.
#[derive(Debug, Clone, PartialEq)]
pub struct EndingGroup {
    /// The group.
    pub group: ShutdownGroup,
    /// Its pods; at least one.
    pub pods: Vec<Arc<Pod>>,
}

impl ShutdownPolicy {
    /// The policy of `shutdownGracePeriod`, of which the last part is that of
    /// `shutdownGracePeriodCriticalPods`. `None` if there is none. Fractions of seconds are dropped.
    #[must_use]
    pub fn of_periods(all: Duration, critical: Duration) -> Option<Self> {
        let others = all.checked_sub(critical)?;
        let group = |priority, period: Duration| ShutdownGroup {
            priority,
            period: Duration::from_secs(period.as_secs()),
        };
        (!all.is_zero()).then(|| Self {
            groups: vec![
                group(0, others),
                group(SYSTEM_CRITICAL_PRIORITY, all.saturating_sub(others)),
            ],
        })
    }

    /// The policy of `shutdownGracePeriodByPodPriority`; `None` if the list is empty.
    #[must_use]
    pub fn of_priorities(mut groups: Vec<ShutdownGroup>) -> Option<Self> {
        groups.sort_by_key(|group| group.priority);
        (!groups.is_empty()).then_some(Self { groups })
    }

    /// How long the shutdown has to be delayed for all groups.
    #[must_use]
    pub fn period(&self) -> Duration {
        let periods = self.groups.iter().map(|group| group.period);
        periods.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// The groups in the order in which they end, those without pods left out.
    #[must_use]
    pub fn plan(&self, pods: impl IntoIterator<Item = Arc<Pod>>) -> Vec<EndingGroup> {
        let mut plan: Vec<EndingGroup> = self
            .groups
            .iter()
            .map(|group| EndingGroup {
                group: *group,
                pods: Vec::new(),
            })
            .collect();
        for pod in pods {
            plan[self.place(pod.spec.priority)].pods.push(pod);
        }
        plan.retain(|ending| !ending.pods.is_empty());
        plan
    }

    /// The group of a priority: the last one that does not begin above it, or the first one. Of groups
    /// with the same priority the first one has the pods of just this priority.
    fn place(&self, priority: i32) -> usize {
        let at = self
            .groups
            .partition_point(|group| group.priority < priority);
        match self.groups.get(at) {
            Some(group) if group.priority == priority => at,
            _ => at.saturating_sub(1),
        }
    }
}

impl EndingGroup {
    /// The grace period of a pod of this group: its own, if that is shorter than the group's.
    #[must_use]
    pub fn grace(&self, pod: &Pod) -> Duration {
        pod.spec.termination_grace_period.min(self.group.period)
    }
}

#[cfg(test)]
mod tests;
