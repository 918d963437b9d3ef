//! The complete list of the runtime, grouped by pod and compared with the records.

use std::{collections::BTreeMap, time::Duration};

use rubelet_base::{PodName, PodUid, Seq};
use rubelet_cri::{CriError, RuntimeService, v1};
use rubelet_pod_plan::{
    ObservedPod,
    cri_config::labels::{GRACE_PERIOD, POD_NAME, POD_NAMESPACE, POD_UID},
};

use super::{
    convert::container_state, fingerprint::state_of, handle::RuntimePod, observation::Observation,
};

/// A complete list of sandboxes and containers.
#[derive(Debug, Default)]
pub(super) struct RuntimeList {
    pub(super) sandboxes: Vec<v1::PodSandbox>,
    pub(super) containers: Vec<v1::Container>,
}

/// Lists sandboxes first, so that no container is listed without its sandbox.
pub(super) async fn list(runtime: &dyn RuntimeService) -> Result<RuntimeList, CriError> {
    let sandboxes = runtime
        .list_pod_sandbox(v1::ListPodSandboxRequest::default())
        .await?
        .items;
    let containers = runtime
        .list_containers(v1::ListContainersRequest::default())
        .await?
        .containers;
    Ok(RuntimeList {
        sandboxes,
        containers,
    })
}

/// The sandboxes and containers of one pod in a full list.
#[derive(Debug, Default)]
pub(super) struct ListedPod<'a> {
    pub(super) sandboxes: Vec<&'a v1::PodSandbox>,
    pub(super) containers: Vec<&'a v1::Container>,
}

/// Groups a full list by the pods' UID labels. Sandboxes and containers without this label do not
/// belong to a kubelet and are ignored.
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

/// The difference between a listed pod and its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    /// None.
    None,
    /// A sandbox or container changed state.
    State,
    /// A sandbox or container was added or removed.
    Identifiers,
}

impl Difference {
    /// One word for metrics.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::State => "state",
            Self::Identifiers => "identifiers",
        }
    }
}

/// Compares a pod in a list that began at `began` with its observation.
pub(super) fn compare(listed: &ListedPod<'_>, seen: &Observation, began: Seq) -> Difference {
    // The record is newer than the list.
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
        if state_of(&record.phase) != i32::from(container_state(item.state)) {
            difference = Difference::State;
        }
    }
    difference
}

/// The listed pods in the form that housekeeping needs.
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
