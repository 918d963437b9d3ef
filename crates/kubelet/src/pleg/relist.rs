//! The full look at the runtime, compared with what is known.

use std::{collections::BTreeMap, time::Duration};

use rubelet_base::{PodName, PodUid, Seq};
use rubelet_cri::v1;
use rubelet_pod_plan::{
    ContainerPhase, ObservedPod,
    cri_config::labels::{GRACE_PERIOD, POD_NAME, POD_NAMESPACE, POD_UID},
};

use super::{cell::Observation, handle::RuntimePod};

/// What a full list says of one pod.
#[derive(Debug, Default)]
pub(super) struct ListedPod<'a> {
    pub(super) sandboxes: Vec<&'a v1::PodSandbox>,
    pub(super) containers: Vec<&'a v1::Container>,
}

/// Groups a full list by the pods' UID labels. What carries no such label is not a pod of a
/// kubelet and is left alone.
pub(super) fn group<'a>(
    sandboxes: &'a [v1::PodSandbox],
    containers: &'a [v1::Container],
) -> BTreeMap<&'a str, ListedPod<'a>> {
    let mut pods: BTreeMap<&str, ListedPod<'_>> = BTreeMap::new();
    for sandbox in sandboxes {
        if let Some(uid) = sandbox.labels.get(POD_UID) {
            pods.entry(uid).or_default().sandboxes.push(sandbox);
        }
    }
    for container in containers {
        if let Some(uid) = container.labels.get(POD_UID) {
            pods.entry(uid).or_default().containers.push(container);
        }
    }
    pods
}

/// How a listed pod differs from its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    /// Not at all.
    None,
    /// Something changed state.
    State,
    /// Something came or went.
    Identifiers,
}

/// Compares a list that began at `began` with the record.
pub(super) fn compare(listed: &ListedPod<'_>, seen: &Observation, began: Seq) -> Difference {
    if seen.seq > began {
        return Difference::None;
    }
    let known: &ObservedPod = &seen.pod;
    if known.sandboxes.len() != listed.sandboxes.len()
        || known.containers.len() != listed.containers.len()
    {
        return Difference::Identifiers;
    }
    let mut difference = Difference::None;
    for item in &listed.sandboxes {
        let Some(record) = known
            .sandboxes
            .iter()
            .find(|record| record.id.as_str() == item.id)
        else {
            return Difference::Identifiers;
        };
        if record.ready != (item.state == i32::from(v1::PodSandboxState::SandboxReady)) {
            difference = Difference::State;
        }
    }
    for item in &listed.containers {
        let Some(record) = known
            .containers
            .iter()
            .find(|record| record.id.as_str() == item.id)
        else {
            return Difference::Identifiers;
        };
        let same = matches!(
            (&record.phase, item.state()),
            (
                ContainerPhase::Created,
                v1::ContainerState::ContainerCreated
            ) | (
                ContainerPhase::Running { .. },
                v1::ContainerState::ContainerRunning
            ) | (
                ContainerPhase::Exited(_),
                v1::ContainerState::ContainerExited
            ) | (
                ContainerPhase::Unknown,
                v1::ContainerState::ContainerUnknown
            )
        );
        if !same {
            difference = Difference::State;
        }
    }
    difference
}

/// What housekeeping needs to know of the listed pods.
pub(super) fn runtime_pods(pods: &BTreeMap<&str, ListedPod<'_>>) -> Vec<RuntimePod> {
    pods.iter()
        .map(|(uid, listed)| {
            let labels = listed
                .sandboxes
                .first()
                .map(|sandbox| &sandbox.labels)
                .or_else(|| listed.containers.first().map(|container| &container.labels));
            let label = |key: &str| {
                labels
                    .and_then(|labels| labels.get(key))
                    .map(String::as_str)
                    .unwrap_or_default()
            };
            let grace = listed
                .containers
                .iter()
                .filter_map(|container| container.annotations.get(GRACE_PERIOD)?.parse().ok())
                .max()
                .map(Duration::from_secs);
            let source = listed
                .sandboxes
                .iter()
                .find_map(|sandbox| sandbox.annotations.get("kubernetes.io/config.source"))
                .map(|source| source.as_str().into());
            RuntimePod {
                uid: PodUid::from(*uid),
                name: PodName::new(label(POD_NAMESPACE), label(POD_NAME)),
                grace,
                source,
            }
        })
        .collect()
}
