//! Checks whether the pod's sandbox must be created or replaced.

use rubelet_api::pod::Pod;

use crate::{
    definition,
    observed::{ObservedPod, ObservedSandbox},
    reason::PlanReason,
};

/// The result of comparing the sandbox with the pod.
pub(super) enum SandboxState<'a> {
    /// The sandbox is usable.
    Good(&'a ObservedSandbox),
    /// A new one is needed, with this attempt number.
    Replace {
        /// `metadata.attempt` of the new one.
        attempt: u32,
        /// The reason.
        why: PlanReason,
    },
}

/// Upstream's `PodSandboxChanged`, and the definition check for pods that can be edited.
/// `requested` is the attempt of the sandbox that was requested last.
pub(super) fn state<'a>(pod: &Pod, observed: &'a ObservedPod, requested: u32) -> SandboxState<'a> {
    let Some(newest) = observed.sandboxes.first() else {
        return SandboxState::Replace {
            attempt: requested,
            why: PlanReason::NoSandbox,
        };
    };
    let attempt = newest.attempt.saturating_add(1).max(requested);
    let ready = observed
        .sandboxes
        .iter()
        .filter(|sandbox| sandbox.ready)
        .count();
    let why = if ready > 1 {
        PlanReason::SeveralSandboxes(ready)
    } else if !newest.ready {
        PlanReason::SandboxNotReady(newest.id.clone())
    } else if newest.host_network != pod.spec.host_network {
        PlanReason::SandboxNetworkChanged(newest.id.clone())
    } else if !newest.host_network && newest.ips.is_empty() {
        PlanReason::SandboxWithoutAddress(newest.id.clone())
    } else if definition::sandbox_changed(pod, newest) {
        PlanReason::SandboxDefinitionChanged(newest.id.clone())
    } else {
        return SandboxState::Good(newest);
    };
    SandboxState::Replace { attempt, why }
}
