//! Identifiers of sandboxes and containers that an earlier process of this agent knew.
//!
//! A process that has just started knows nothing, and a list that omits a running container would
//! have it started a second time. So the identifiers are kept with the pod's record, and each is
//! queried by its own status call. What was created after the record was written has the number
//! that is used next, and the runtime rejects a name that is taken.

use std::collections::{BTreeMap, BTreeSet};

use rubelet_base::{ContainerId, PodUid, SandboxId, Seq};
use rubelet_pod_plan::ObservedPod;
use serde::{Deserialize, Serialize};

use super::{cause::Cause, handle::PlegHandle};

/// Identifiers of what the runtime held of one pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeIds {
    /// Its sandboxes.
    pub sandboxes: BTreeSet<SandboxId>,
    /// Its containers, each with its sandbox.
    pub containers: BTreeMap<ContainerId, SandboxId>,
}

impl RuntimeIds {
    /// Those of all that was seen of a pod.
    #[must_use]
    pub fn of(pod: &ObservedPod) -> Self {
        let sandboxes = pod.sandboxes.iter().map(|found| found.id.clone());
        let containers = pod.containers.iter();
        Self {
            sandboxes: sandboxes.collect(),
            containers: containers
                .map(|found| (found.id.clone(), found.sandbox.clone()))
                .collect(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sandboxes.is_empty() && self.containers.is_empty()
    }

    /// Whether all of them are among what was seen.
    fn are_in(&self, pod: &ObservedPod) -> bool {
        let sandbox = |id: &SandboxId| pod.sandboxes.iter().any(|found| found.id == *id);
        let container = |id: &ContainerId| pod.containers.iter().any(|found| found.id == *id);
        self.sandboxes.iter().all(sandbox) && self.containers.keys().all(container)
    }
}

impl PlegHandle {
    /// What to keep of a pod: what was seen, and what this agent has made since.
    #[must_use]
    pub fn runtime_ids(&self, uid: &PodUid) -> RuntimeIds {
        let Some(tracked) = self.shared.known(uid) else {
            return RuntimeIds::default();
        };
        let marks = tracked.marks();
        let mut ids = RuntimeIds::of(&tracked.observation.borrow().pod);
        ids.sandboxes
            .extend(marks.learned_sandboxes.iter().cloned());
        let containers = marks.learned_containers.iter();
        ids.containers
            .extend(containers.map(|(id, sandbox)| (id.clone(), sandbox.clone())));
        ids
    }

    /// Restores what an earlier process knew of a pod. What may be acted on is an observation with
    /// a larger number than the one that this returns: an older one was taken from lists alone.
    #[must_use]
    pub fn restore_ids(&self, uid: &PodUid, ids: &RuntimeIds) -> Seq {
        if ids.is_empty() {
            return Seq::ZERO;
        }
        self.track_listed(uid);
        let tracked = self.track(uid);
        if ids.are_in(&tracked.observation.borrow().pod) {
            return Seq::ZERO;
        }
        self.mark_pod(&tracked, Cause::Demand, |marks| {
            marks
                .learned_sandboxes
                .extend(ids.sandboxes.iter().cloned());
            let containers = ids.containers.iter();
            marks
                .learned_containers
                .extend(containers.map(|(id, sandbox)| (id.clone(), sandbox.clone())));
        });
        // After the mark: an inspection that began before it may not have read these identifiers.
        self.now()
    }

    /// Has the pod listed again. Only an observation with a larger number than the returned one may
    /// be acted on.
    #[must_use]
    pub fn relist_pod(&self, uid: &PodUid) -> Seq {
        self.mark_as(uid, Cause::Demand, |marks| marks.needs_list = true);
        self.now()
    }
}
