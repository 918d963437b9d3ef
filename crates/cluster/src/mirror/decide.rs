//! Decides which mirror pods to create, replace or delete. Pure.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_api::{
    annotations::{CONFIG_HASH, CONFIG_SEEN, CONFIG_SOURCE},
    pod::{Pod, PodSource, PodSpec},
    status::Phase,
};
use rubelet_base::PodName;
use rubelet_node_state::pod_board::PodEntry;
use rubelet_sources::desired::Desired;

use crate::source::ApiPod;

/// The action for one pod name.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MirrorAction {
    /// The static pod has no mirror pod.
    Create(Arc<Pod>),
    /// This mirror pod must be deleted; where one is desired, a new one follows.
    Delete(Arc<ApiPod>, DeleteReason),
    /// A pod of that name that is no mirror pod occupies the name.
    Blocked(Arc<Pod>, Arc<ApiPod>),
}

/// Why a mirror pod has to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeleteReason {
    /// It was deleted by a user.
    Deleted,
    /// It shows another version of the manifest, or another pod.
    Differs,
    /// It shows an end, and the static pod runs again; a phase never goes back.
    RunsAgain,
    /// Its static pod is gone.
    Orphaned,
}

impl DeleteReason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "it is being deleted while its static pod runs",
            Self::Differs => "it did not match the static pod",
            Self::RunsAgain => "it has ended and its static pod runs again",
            Self::Orphaned => "its static pod is gone",
        }
    }
}

/// The actions, by pod name.
pub(super) fn decide(
    desired: &Desired,
    board: &[Arc<PodEntry>],
    copies: &[Arc<ApiPod>],
) -> BTreeMap<PodName, MirrorAction> {
    let (mut mirrors, mut others) = (BTreeMap::new(), BTreeMap::new());
    for copy in copies {
        let list = if copy.mirror.is_some() {
            &mut mirrors
        } else {
            &mut others
        };
        list.insert(&copy.name, copy);
    }
    let mut on_host: BTreeMap<&PodName, Vec<&PodEntry>> = BTreeMap::new();
    for entry in board.iter().filter(|one| one.pod.source != PodSource::Api) {
        on_host.entry(&entry.pod.name).or_default().push(entry);
    }
    let mut steps = BTreeMap::new();
    let wanted = desired.pods.values();
    for pod in wanted.filter(|pod| pod.source != PodSource::Api) {
        let entries = on_host.get(&pod.name).map_or(&[][..], Vec::as_slice);
        // The pod that this one replaces has not ended; its mirror pod shows that.
        let replaces = entries.iter().any(|entry| entry.pod.uid != pod.uid);
        let own = entries.iter().find(|entry| entry.pod.uid == pod.uid);
        let step = match (others.get(&pod.name), mirrors.get(&pod.name)) {
            (Some(other), _) => Some(MirrorAction::Blocked(Arc::clone(pod), Arc::clone(other))),
            (None, None) => (!replaces).then(|| MirrorAction::Create(Arc::clone(pod))),
            (None, Some(mirror)) => wrong(mirror, pod, own.copied())
                .filter(|why| !replaces || *why == DeleteReason::Deleted)
                .map(|why| MirrorAction::Delete(Arc::clone(mirror), why)),
        };
        if let Some(step) = step {
            steps.insert(pod.name.clone(), step);
        }
    }
    for (name, mirror) in mirrors {
        let wanted = desired.pods.get(name);
        let wanted = wanted.is_some_and(|pod| pod.source != PodSource::Api);
        // Until all manifests were read, any mirror pod may be desired. One whose pod is
        // terminating still shows its status.
        if !wanted && desired.sources_ready() && !on_host.contains_key(name) {
            let step = MirrorAction::Delete(Arc::clone(mirror), DeleteReason::Orphaned);
            steps.insert(name.clone(), step);
        }
    }
    steps
}

/// Why the mirror pod of a static pod must go. `own` is what the node shows of that pod: as long as it
/// shows nothing, the pod that this one replaces may still run.
fn wrong(mirror: &ApiPod, pod: &Pod, own: Option<&PodEntry>) -> Option<DeleteReason> {
    let ended = mirror.phase.is_some_and(Phase::is_terminal);
    let runs = |entry: &PodEntry| entry.deletion.is_none() && !entry.status.phase.is_terminal();
    if mirror.deletion.is_some() {
        Some(DeleteReason::Deleted)
    } else if own.is_some() && !shows(mirror, pod) {
        Some(DeleteReason::Differs)
    } else if ended && own.is_some_and(runs) {
        Some(DeleteReason::RunsAgain)
    } else {
        None
    }
}

/// Whether a mirror pod was made for this version of a manifest.
///
/// Another kubelet hashes the manifest in its own way, and gives the pod that hash as its UID.
/// Where that UID was adopted with the running containers, its mirror pod stays as long as it shows
/// what runs: the cluster does not notice that the kubelet was replaced.
fn shows(mirror: &ApiPod, pod: &Pod) -> bool {
    let hash = pod.annotations.get(CONFIG_HASH).map(|hash| &**hash);
    let (made_for, shown_hash) = (mirror.mirror.as_deref(), mirror.config_hash.as_deref());
    if made_for == hash {
        return shown_hash.is_none() || shown_hash == hash;
    }
    let adopted = made_for == shown_hash && made_for == Some(pod.uid.as_str());
    adopted && mirror.shows.as_ref().is_some_and(|shown| same(shown, pod))
}

/// Whether two definitions run the same, as far as an API server preserves a manifest's fields.
fn same(shown: &Pod, pod: &Pod) -> bool {
    const KUBELETS: [&str; 3] = [CONFIG_HASH, CONFIG_SEEN, CONFIG_SOURCE];
    let mut annotations = pod.annotations.iter();
    let annotated = annotations.all(|(key, value)| {
        KUBELETS.contains(&&**key) || shown.annotations.get(key) == Some(value)
    });
    annotated && shown.labels == pod.labels && comparable(shown) == comparable(pod)
}

/// The fields of a specification that are neither covered by a hash of its text nor set by
/// admission.
fn comparable(pod: &Pod) -> PodSpec {
    let mut spec = pod.spec.clone();
    let all = spec.init_containers.iter_mut().chain(&mut spec.containers);
    all.for_each(|container| container.definition = None);
    PodSpec {
        priority: 0,
        priority_class: None,
        service_account: "".into(),
        overhead: PodSpec::default().overhead,
        node_selector: PodSpec::default().node_selector,
        node_affinity: None,
        tolerations: Vec::new(),
        ..spec
    }
}
