//! A pod's state as one number, so that a relist without changes allocates nothing.

use std::hash::{DefaultHasher, Hash, Hasher};

use rubelet_cri::v1;
use rubelet_pod_plan::{ContainerPhase, ObservedPod};

use super::convert::container_state;

/// The sum of the hashes of a pod's sandboxes and containers, each of identifier and state. It does
/// not depend on their order. Two states of one pod have the same number once in 2^64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fingerprint(pub(super) u64);

impl Fingerprint {
    /// The fingerprint of an observation.
    pub(super) fn of(pod: &ObservedPod) -> Self {
        let mut sum = Self::default();
        for sandbox in &pod.sandboxes {
            sum.add(sandbox.id.as_str(), sandbox_state(sandbox.ready));
        }
        for container in &pod.containers {
            sum.add(container.id.as_str(), state_of(&container.phase));
        }
        sum
    }

    /// Adds a sandbox of a list.
    pub(super) fn add_sandbox(&mut self, item: &v1::PodSandbox) {
        let ready = item.state == i32::from(v1::PodSandboxState::SandboxReady);
        self.add(&item.id, sandbox_state(ready));
    }

    /// Adds a container of a list.
    pub(super) fn add_container(&mut self, item: &v1::Container) {
        self.add(&item.id, container_state(item.state).into());
    }

    fn add(&mut self, id: &str, state: i32) {
        // The keys of this hasher are fixed: the numbers are compared within one process only.
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        state.hash(&mut hasher);
        self.0 = self.0.wrapping_add(hasher.finish());
    }
}

/// Sandboxes get numbers that containers do not have.
fn sandbox_state(ready: bool) -> i32 {
    if ready { -1 } else { -2 }
}

/// The state as a list of the runtime reports it.
pub(super) fn state_of(phase: &ContainerPhase) -> i32 {
    let state = match phase {
        ContainerPhase::Created => v1::ContainerState::ContainerCreated,
        ContainerPhase::Running { .. } => v1::ContainerState::ContainerRunning,
        ContainerPhase::Exited(_) => v1::ContainerState::ContainerExited,
        ContainerPhase::Unknown => v1::ContainerState::ContainerUnknown,
    };
    state.into()
}

#[cfg(test)]
mod tests {
    use super::{super::convert, *};

    #[test]
    fn a_list_and_an_inspection_agree_on_undefined_states() {
        for state in [0, 1, 2, 3, 4, -1, i32::MAX] {
            let sandbox = v1::PodSandboxStatus {
                id: "s".into(),
                state,
                ..v1::PodSandboxStatus::default()
            };
            let container = v1::ContainerStatus {
                id: "c".into(),
                state,
                ..v1::ContainerStatus::default()
            };
            let observed = ObservedPod {
                sandboxes: vec![convert::sandbox(sandbox)],
                containers: vec![convert::container(container, "s".into(), String::new())],
            };
            let mut listed = Fingerprint::default();
            listed.add_sandbox(&v1::PodSandbox {
                id: "s".into(),
                state,
                ..v1::PodSandbox::default()
            });
            listed.add_container(&v1::Container {
                id: "c".into(),
                state,
                ..v1::Container::default()
            });
            assert_eq!(Fingerprint::of(&observed), listed, "{state}");
        }
    }
}
