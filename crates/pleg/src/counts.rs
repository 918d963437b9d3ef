//! Numbers of sandboxes and containers in each state, over all pods.

use rubelet_pod_plan::{ContainerPhase, ObservedPod};

/// Counts over all pods.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunningCounts {
    /// Pods with a sandbox that is ready.
    pub(super) pods: usize,
    by_state: [usize; 4],
}

const STATES: [&str; 4] = ["created", "running", "exited", "unknown"];

impl RunningCounts {
    /// Replaces the counts of one pod: those of `old` by those of `new`.
    pub(super) fn replace(&mut self, old: &ObservedPod, new: &ObservedPod) {
        let (old, new) = (Self::of(old), Self::of(new));
        self.pods = (self.pods + new.pods).saturating_sub(old.pods);
        for (count, (new, old)) in self
            .by_state
            .iter_mut()
            .zip(new.by_state.into_iter().zip(old.by_state))
        {
            *count = (*count + new).saturating_sub(old);
        }
    }

    /// Numbers of containers by state, with the kubelet's names of the states.
    pub(super) fn containers(&self) -> [(&'static str, usize); 4] {
        std::array::from_fn(|index| (STATES[index], self.by_state[index]))
    }

    fn of(pod: &ObservedPod) -> Self {
        let mut counts = Self {
            pods: usize::from(pod.sandboxes.iter().any(|sandbox| sandbox.ready)),
            ..Self::default()
        };
        for container in &pod.containers {
            let state = match container.phase {
                ContainerPhase::Created => 0,
                ContainerPhase::Running { .. } => 1,
                ContainerPhase::Exited(_) => 2,
                ContainerPhase::Unknown => 3,
            };
            counts.by_state[state] += 1;
        }
        counts
    }
}
