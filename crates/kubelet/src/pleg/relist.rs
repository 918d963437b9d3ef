//! The full look at the runtime, compared with what is known.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_base::{PodName, PodUid, Seq};
use rubelet_cri::{CriError, RuntimeService, v1};
use rubelet_pod_plan::{
    ObservedPod,
    cri_config::labels::{GRACE_PERIOD, POD_NAME, POD_NAMESPACE, POD_UID},
};

use tokio::time::Instant;
use tracing::debug;

use super::{
    cause::Cause,
    cell::{Observation, PodCell},
    convert::container_state,
    fingerprint::state_of,
    handle::{RelistState, RuntimePod, lock},
    task::PlegTask,
};

/// A complete list.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) sandboxes: Vec<v1::PodSandbox>,
    pub(super) containers: Vec<v1::Container>,
}

/// Sandboxes first: a container's sandbox is then never missing from an older list.
pub(super) async fn list(runtime: &dyn RuntimeService) -> Result<Listed, CriError> {
    let sandboxes = runtime
        .list_pod_sandbox(v1::ListPodSandboxRequest::default())
        .await?
        .items;
    let containers = runtime
        .list_containers(v1::ListContainersRequest::default())
        .await?
        .containers;
    Ok(Listed {
        sandboxes,
        containers,
    })
}

impl PlegTask {
    /// Compares a complete list with the records: marks what differs, and makes records for pods
    /// that are new.
    pub(super) fn reconcile(&mut self, began: Seq, at: Instant, listed: &Listed) {
        let first = self.handle.shared.relist.borrow().at.is_none();
        let differs = !self.is_as_recorded(began, listed);
        let pods = (differs || first).then(|| self.compare_all(began, listed));
        self.handle.shared.relist.send_if_modified(|state| {
            let changed = pods.as_ref().is_some_and(|pods| *state.pods != *pods);
            let pods = match pods {
                Some(pods) if changed => Arc::new(pods),
                _ => Arc::clone(&state.pods),
            };
            *state = RelistState {
                seq: began,
                at: Some(at),
                pods,
            };
            // Nobody is woken for a list like the last one.
            changed || first
        });
    }

    /// Whether a list shows what the records say; costs no memory.
    fn is_as_recorded(&self, began: Seq, listed: &Listed) -> bool {
        let cells = self.handle.shared.lock_cells();
        let cell = |labels: &Labels| cells.get(labels.get(POD_UID)?.as_str());
        let mut known = true;
        for item in &listed.sandboxes {
            match cell(&item.labels) {
                Some(cell) => cell.marks().listed.add_sandbox(item),
                None => known &= !item.labels.contains_key(POD_UID),
            }
        }
        for item in &listed.containers {
            match cell(&item.labels) {
                Some(cell) => cell.marks().listed.add_container(item),
                None => known &= !item.labels.contains_key(POD_UID),
            }
        }
        let mut same = true;
        for cell in cells.values() {
            let mut marks = cell.marks();
            let sum = std::mem::take(&mut marks.listed);
            // What was inspected since the list began is newer than the list.
            let seen = cell.observation.borrow().seq;
            same &= seen > began || seen > Seq::ZERO && sum == marks.fingerprint;
        }
        known && same
    }

    /// Compares pod by pod and marks those that differ; all pods that the list names.
    fn compare_all(&mut self, began: Seq, listed: &Listed) -> Vec<RuntimePod> {
        let grouped = group(&listed.sandboxes, &listed.containers);
        let pods = runtime_pods(&grouped);
        for pod in &pods {
            self.handle.listed_cell(&pod.uid);
        }
        let cells: Vec<_> = self.handle.shared.lock_cells().values().cloned().collect();
        let nothing = ListedPod::default();
        let gapless = lock(&self.handle.shared.flow).cadence.is_gapless();
        for cell in cells {
            let found = grouped.get(cell.uid.as_str()).unwrap_or(&nothing);
            let difference = compare(found, &cell.observation.borrow(), began);
            if difference == Difference::None {
                continue;
            }
            debug!(pod = %cell.uid, ?difference, "Relist found a difference");
            if gapless && is_untold(&cell) {
                self.missed
                    .note(&cell.uid, began, difference, Instant::now());
            }
            self.handle.mark_cell(&cell, Cause::Relist, |marks| {
                marks.reread_all = true;
                marks.needs_list |= difference == Difference::Identifiers;
            });
        }
        pods
    }
}

type Labels = BTreeMap<String, String>;

/// Whether nothing has asked for an inspection that would show the same.
fn is_untold(cell: &PodCell) -> bool {
    let seen = cell.observation.borrow().seq;
    let marks = cell.marks();
    !marks.turn.is_claimed() && !marks.busy && !marks.is_dirty(seen)
}

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
        if state_of(&record.phase) != i32::from(container_state(item.state)) {
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
