//! Finds the pod of a sandbox or container by its identifier.

use std::collections::{HashMap, VecDeque};

use rubelet_base::PodUid;
use rubelet_pod_plan::ObservedPod;

/// Number of identifiers of deleted objects that are kept: the runtime's last events for them may
/// still arrive, and must not count as events of an unknown pod.
const GONE: usize = 1024;

/// Identifiers of sandboxes and containers, each with its pod.
#[derive(Debug, Default)]
pub(super) struct PodIndex {
    pods: HashMap<Box<str>, IndexedPod>,
    gone: VecDeque<Box<str>>,
}

#[derive(Debug)]
struct IndexedPod {
    uid: PodUid,
    /// True if the object was deleted. Reset if it reappears after an incomplete list.
    gone: bool,
}

impl PodIndex {
    /// The pod of a sandbox or container.
    pub(super) fn pod(&self, id: &str) -> Option<&PodUid> {
        self.pods.get(id).map(|pod| &pod.uid)
    }

    /// Applies what changed from one observation of a pod to the next.
    pub(super) fn update(&mut self, uid: &PodUid, old: &ObservedPod, new: &ObservedPod) {
        for id in ids(new) {
            match self.pods.get_mut(id) {
                Some(known) => known.gone = false,
                None => {
                    let uid = uid.clone();
                    self.pods.insert(id.into(), IndexedPod { uid, gone: false });
                }
            }
        }
        for id in ids(old) {
            if !ids(new).any(|now| now == id) {
                self.retire(id);
            }
        }
    }

    /// Retires the identifiers of a removed pod.
    pub(super) fn forget(&mut self, last: &ObservedPod) {
        for id in ids(last) {
            self.retire(id);
        }
    }

    /// Number of kept identifiers.
    pub(super) fn len(&self) -> usize {
        self.pods.len() + self.gone.len()
    }

    fn retire(&mut self, id: &str) {
        // It stays in `pods` for now, so that a late event does not count as one of an unknown pod.
        if let Some(known) = self.pods.get_mut(id) {
            known.gone = true;
        }
        self.gone.push_back(id.into());
        if self.gone.len() > GONE
            && let Some(oldest) = self.gone.pop_front()
            && self.pods.get(&oldest).is_some_and(|known| known.gone)
        {
            self.pods.remove(&oldest);
        }
    }
}

fn ids(pod: &ObservedPod) -> impl Iterator<Item = &str> {
    let sandboxes = pod.sandboxes.iter().map(|sandbox| sandbox.id.as_str());
    sandboxes.chain(pod.containers.iter().map(|container| container.id.as_str()))
}

#[cfg(test)]
mod tests {
    use rubelet_pod_plan::ContainerPhase;

    use super::*;
    use crate::tests::seen_container;

    fn pod(ids: &[&str]) -> ObservedPod {
        let containers = ids
            .iter()
            .map(|id| seen_container(id, ContainerPhase::Created));
        ObservedPod {
            containers: containers.collect(),
            ..ObservedPod::default()
        }
    }

    #[test]
    fn deleted_objects_are_kept_for_a_while_and_those_that_reappear_for_good() {
        let mut index = PodIndex::default();
        let uid = PodUid::from("1");
        index.update(&uid, &pod(&[]), &pod(&["back", "gone"]));
        // A list that leaves out both, and one that shows the first again.
        index.update(&uid, &pod(&["back", "gone"]), &pod(&[]));
        index.update(&uid, &pod(&[]), &pod(&["back"]));
        assert_eq!(index.pod("gone"), Some(&uid));
        for number in 0..GONE {
            let id = number.to_string();
            index.update(&uid, &pod(&["back"]), &pod(&["back", &id]));
            index.update(&uid, &pod(&["back", &id]), &pod(&["back"]));
        }
        assert_eq!(index.pod("gone"), None);
        assert_eq!(index.pod("back"), Some(&uid));
    }
}
