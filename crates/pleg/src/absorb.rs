//! What the result of an inspection means for the record of its pod. Pure: time is a parameter.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_base::ContainerId;
use rubelet_pod_plan::{ContainerPhase, ObservedPod};
use tokio::time::Instant;

use super::{kernel_exits::KernelExits, oom_reasons::PendingOomReasons, rechecks::Rechecks};

/// Time after which the state `Unknown` of a container is believed.
const BELIEVE_UNKNOWN: Duration = Duration::from_secs(1);

/// States of one pod that may change without an event.
#[derive(Debug, Default)]
pub(super) struct UnsettledStates {
    /// Containers in the state `Unknown`, with the time of the first such observation.
    unknown_since: BTreeMap<ContainerId, Instant>,
    /// Exits whose reason may still become `OOMKilled`.
    pub(super) oom_reasons: PendingOomReasons,
    /// States that are read again after a fixed time.
    pub(super) rechecks: Rechecks,
    /// Exits of its containers that the kernel reported.
    pub(super) kernel_exits: KernelExits,
}

/// The new record of a pod.
#[derive(Debug)]
pub(super) enum Absorbed {
    /// The result is not published, and the pod is inspected again at this time.
    Withheld {
        /// When the result is believed.
        until: Instant,
    },
    /// The result is published.
    Published {
        /// The observed pod; the previous allocation if and only if nothing changed, so that an
        /// inspection costs no memory at idle.
        pod: Arc<ObservedPod>,
        /// When the pod is inspected again without an event.
        recheck_at: Option<Instant>,
    },
}

impl UnsettledStates {
    /// Compares the result of an inspection with the observation before it.
    pub(super) fn absorb(
        &mut self,
        old: &Arc<ObservedPod>,
        mut pod: ObservedPod,
        now: Instant,
    ) -> Absorbed {
        // First: the other checks see the pod as it will be published.
        self.rechecks.hold_back(old, &mut pod, now);
        // Nothing is published: a task that acted on "unknown" would replace what may still run.
        if let Some(until) = self.unknown_until(&pod, now) {
            return Absorbed::Withheld { until };
        }
        let rechecks = [
            self.oom_reasons.note(&pod, now),
            self.rechecks.note(&pod, now),
            self.kernel_exits.note(&mut pod, now),
        ];
        Absorbed::Published {
            pod: if **old == pod {
                Arc::clone(old)
            } else {
                Arc::new(pod)
            },
            recheck_at: rechecks.into_iter().flatten().min(),
        }
    }

    /// Time at which the state `Unknown` of all such containers of this observation is believed;
    /// `None` if it is now. A runtime that has just been restarted may report a container as unknown
    /// that it finds a moment later.
    fn unknown_until(&mut self, pod: &ObservedPod, now: Instant) -> Option<Instant> {
        let since: BTreeMap<_, _> = pod
            .containers
            .iter()
            .filter(|found| found.phase == ContainerPhase::Unknown)
            .map(|found| {
                let since = self.unknown_since.get(&found.id).copied().unwrap_or(now);
                (found.id.clone(), since)
            })
            .collect();
        self.unknown_since = since;
        let youngest = self.unknown_since.values().max()?;
        Some(*youngest + BELIEVE_UNKNOWN).filter(|at| *at > now)
    }
}

#[cfg(test)]
mod tests;
