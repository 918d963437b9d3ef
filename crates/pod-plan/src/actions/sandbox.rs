//! Whether the pod's sandbox has to be made or replaced.

use rubelet_api::pod::Pod;

use crate::{
    definition,
    observed::{ObservedPod, ObservedSandbox},
    why::Why,
};

/// The state of the sandbox with respect to the pod.
pub(super) enum SandboxState<'a> {
    /// It can be used.
    Good(&'a ObservedSandbox),
    /// A new one is needed, with this attempt number.
    Replace {
        /// `metadata.attempt` of the new one.
        attempt: u32,
        /// Why.
        why: Why,
    },
}

/// Upstream's `PodSandboxChanged`, and the definition rule for pods that can be edited. `asked_for`
/// is the attempt of the sandbox that was requested last.
pub(super) fn state<'a>(pod: &Pod, observed: &'a ObservedPod, asked_for: u32) -> SandboxState<'a> {
    let Some(newest) = observed.sandboxes.first() else {
        return SandboxState::Replace {
            attempt: asked_for,
            why: Why::NoSandbox,
        };
    };
    let attempt = newest.attempt.saturating_add(1).max(asked_for);
    let ready = observed
        .sandboxes
        .iter()
        .filter(|sandbox| sandbox.ready)
        .count();
    let why = if ready > 1 {
        Why::SeveralSandboxes(ready)
    } else if !newest.ready {
        Why::SandboxNotReady(newest.id.clone())
    } else if newest.host_network != pod.spec.host_network {
        Why::SandboxNetworkChanged(newest.id.clone())
    } else if !newest.host_network && newest.ips.is_empty() {
        Why::SandboxWithoutAddress(newest.id.clone())
    } else if definition::sandbox_changed(pod, newest) {
        Why::SandboxDefinitionChanged(newest.id.clone())
    } else {
        return SandboxState::Good(newest);
    };
    SandboxState::Replace { attempt, why }
}
