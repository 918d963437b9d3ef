//! Which pod an identifier of the runtime belongs to.

use std::collections::{HashMap, VecDeque};

use rubelet_base::PodUid;
use rubelet_pod_plan::ObservedPod;

/// How many identifiers of deleted objects are kept: the runtime's last events of them may still
/// arrive, and must not look like those of an unknown pod.
const GONE: usize = 1024;

/// Identifiers of sandboxes and containers.
#[derive(Debug, Default)]
pub(super) struct Index {
    pods: HashMap<Box<str>, PodUid>,
    gone: VecDeque<Box<str>>,
}

impl Index {
    /// The pod of a sandbox or container.
    pub(super) fn pod(&self, id: &str) -> Option<&PodUid> {
        self.pods.get(id)
    }

    /// Applies what changed from one observation of a pod to the next.
    pub(super) fn update(&mut self, uid: &PodUid, old: &ObservedPod, new: &ObservedPod) {
        for id in ids(new) {
            if !self.pods.contains_key(id) {
                self.pods.insert(id.into(), uid.clone());
            }
        }
        for id in ids(old) {
            if !ids(new).any(|now| now == id) {
                self.retire(id);
            }
        }
    }

    /// Nothing is left of a pod.
    pub(super) fn forget(&mut self, last: &ObservedPod) {
        for id in ids(last) {
            self.retire(id);
        }
    }

    /// How many identifiers are kept.
    pub(super) fn len(&self) -> usize {
        self.pods.len() + self.gone.len()
    }

    fn retire(&mut self, id: &str) {
        self.gone.push_back(id.into());
        if self.gone.len() > GONE
            && let Some(oldest) = self.gone.pop_front()
        {
            self.pods.remove(&oldest);
        }
    }
}

fn ids(pod: &ObservedPod) -> impl Iterator<Item = &str> {
    let sandboxes = pod.sandboxes.iter().map(|sandbox| sandbox.id.as_str());
    sandboxes.chain(pod.containers.iter().map(|container| container.id.as_str()))
}
