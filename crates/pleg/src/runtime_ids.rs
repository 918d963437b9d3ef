//! Identifiers of sandboxes and containers that an earlier process of this agent knew.
//!
//! A process that has just started knows no containers, and a list that omits a running one would
//! have it started a second time. So the identifiers are kept with the pod's record, and each is
//! queried by its own status call. A container that was created after the record was written has
//! the next attempt number, and the runtime rejects the duplicate name.

use std::collections::{BTreeMap, BTreeSet};

use rubelet_base::{ContainerId, PodUid, SandboxId, Seq};
use rubelet_pod_plan::ObservedPod;
use serde::{Deserialize, Serialize};

use super::{cause::InspectionCause, handle::PlegHandle};

/// Identifiers of one pod's sandboxes and containers in the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeIds {
    /// Its sandboxes.
    pub sandboxes: BTreeSet<SandboxId>,
    /// Its containers, each with its sandbox.
    pub containers: BTreeMap<ContainerId, SandboxId>,
}

impl RuntimeIds {
    /// The identifiers in an observation.
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

    /// True if there are no identifiers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sandboxes.is_empty() && self.containers.is_empty()
    }

    /// True if the observation contains all of them.
    fn are_in(&self, pod: &ObservedPod) -> bool {
        let sandbox = |id: &SandboxId| pod.sandboxes.iter().any(|found| found.id == *id);
        let container = |id: &ContainerId| pod.containers.iter().any(|found| found.id == *id);
        self.sandboxes.iter().all(sandbox) && self.containers.keys().all(container)
    }
}

impl PlegHandle {
    /// The identifiers to keep with a pod's record: those observed, and those created since.
    #[must_use]
    pub fn runtime_ids(&self, uid: &PodUid) -> RuntimeIds {
        let Some(tracked) = self.shared.known(uid) else {
            return RuntimeIds::default();
        };
        let pending = tracked.pending();
        let mut ids = RuntimeIds::of(&tracked.observation.borrow().pod);
        ids.sandboxes
            .extend(pending.learned_sandboxes.iter().cloned());
        let containers = pending.learned_containers.iter();
        ids.containers
            .extend(containers.map(|(id, sandbox)| (id.clone(), sandbox.clone())));
        ids
    }

    /// Restores the identifiers that an earlier process knew. Only an observation with a larger
    /// number than the returned one may be acted on: an older one may be based on lists alone.
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
        self.mark_pod(&tracked, InspectionCause::Requested, |pending| {
            pending
                .learned_sandboxes
                .extend(ids.sandboxes.iter().cloned());
            let containers = ids.containers.iter();
            pending
                .learned_containers
                .extend(containers.map(|(id, sandbox)| (id.clone(), sandbox.clone())));
        });
        // After the mark: an inspection that began before it may not have read these identifiers.
        self.now()
    }

    /// Requests an inspection that lists the pod first. Only an observation with a larger number
    /// than the returned one may be acted on.
    #[must_use]
    pub fn relist_pod(&self, uid: &PodUid) -> Seq {
        self.mark_as(uid, InspectionCause::Requested, |pending| {
            pending.needs_list = true;
        });
        self.now()
    }
}
