//! Deletes pods whose node was deleted, like the pod garbage collector.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    Kind, meta,
    state::ServerState,
    store::Store,
    user::User,
    verb::{DeleteOptions, delete_object},
};

/// A node may come back within this time.
const QUARANTINE: Duration = Duration::from_secs(40);

/// Missing nodes that have pods, and when they were first found missing.
#[derive(Debug, Default)]
pub(super) struct PodGc(BTreeMap<String, Duration>);

impl PodGc {
    /// Finds missing nodes, and removes the pods of nodes that have been missing for long enough.
    pub(super) fn reconcile(&mut self, shared: &ServerState, store: &mut Store) {
        let now = shared.clock.elapsed();
        let pods = store.list("pods", None);
        let of_gone: Vec<_> = pods
            .iter()
            .map(|pod| (pod, meta::text(pod, "/spec/nodeName")))
            .filter(|(_, node)| !node.is_empty() && store.get("nodes", "", node).is_none())
            .collect();
        self.0
            .retain(|gone, _| of_gone.iter().any(|(_, node)| node == gone));
        for (pod, node) in of_gone {
            let since = *self.0.entry(node.to_owned()).or_insert(now);
            if now.saturating_sub(since) < QUARANTINE {
                continue;
            }
            let user = User::new(
                "system:serviceaccount:kube-system:pod-garbage-collector",
                &[],
            );
            let kind = Kind::of("pods").expect("it is in the table");
            let place = (kind, meta::namespace(pod), meta::name(pod));
            let options = DeleteOptions {
                grace: Some(0),
                ..DeleteOptions::default()
            };
            if let Err(error) = delete_object(shared, store, &user, place, &options) {
                tracing::debug!(%error, "Cannot delete a pod of a deleted node");
            }
        }
    }
}
