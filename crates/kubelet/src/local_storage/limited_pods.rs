//! The pods that have limits of local storage.

use std::{collections::HashMap, sync::Arc};

use rubelet_api::pod::Pod;
use rubelet_base::PodUid;
use rubelet_node_plan::local_storage::StorageLimits;

use crate::pod_task::PodContext;

/// A pod with limits.
pub(super) struct LimitedPod {
    pub(super) pod: Arc<Pod>,
    pub(super) limits: StorageLimits,
}

/// The pods with limits that have not ended and are not about to.
#[derive(Default)]
pub(super) struct LimitedPods(HashMap<PodUid, LimitedPod>);

impl LimitedPods {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, uid: &PodUid) -> Option<&LimitedPod> {
        self.0.get(uid)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &LimitedPod> {
        self.0.values()
    }

    /// Reads the pods of the node.
    pub(super) fn update(&mut self, context: &PodContext) {
        let mut before = std::mem::take(&mut self.0);
        for (uid, _, entry) in context.board.list() {
            if entry.has_ended() || entry.deletion.is_some() || is_evicted(context, &uid) {
                continue;
            }
            let known = before.remove(&uid);
            let known = known.filter(|known| Arc::ptr_eq(&known.pod, &entry.pod));
            let limited = known.or_else(|| {
                let limits = StorageLimits::of(&entry.pod)?;
                let pod = Arc::clone(&entry.pod);
                Some(LimitedPod { pod, limits })
            });
            if let Some(limited) = limited {
                self.0.insert(uid.clone(), limited);
            }
        }
    }
}

fn is_evicted(context: &PodContext, uid: &PodUid) -> bool {
    let intents = context.intents.current(uid);
    intents.is_some_and(|intents| intents.eviction.is_some())
}
