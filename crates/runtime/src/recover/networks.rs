//! Whether the pods that go on are still on their networks: somebody may have flushed rules or removed
//! interfaces while no runtime was there to see it.

use std::{collections::BTreeMap, sync::Arc};

use super::{Known, shims::LiveShim};
use crate::{
    engine::Engine,
    sandbox::{Sandbox, network_request},
};

/// The sandboxes of those supervisors that were adopted, and so are not among those left over, as far
/// as they have a network of their own.
pub(super) fn to_check(
    known: &Known,
    supervised: &[String],
    left: &BTreeMap<String, LiveShim>,
) -> Vec<Arc<Sandbox>> {
    let adopted = supervised.iter().filter(|id| !left.contains_key(*id));
    let sandboxes = adopted.filter_map(|id| known.sandboxes.get(id));
    sandboxes
        .filter(|sandbox| sandbox.record().network_held)
        .cloned()
        .collect()
}

/// Asks for one after the other, once: a plugin is a process, and pods that start need the processor
/// more. What is wrong is logged, and is among the warnings of the network as long as the pod is there.
pub(super) async fn check(engine: Arc<Engine>, sandboxes: Vec<Arc<Sandbox>>) {
    for sandbox in sandboxes {
        let record = sandbox.record();
        if !record.network_held {
            continue;
        }
        let netns = engine.layout.sandbox(&sandbox.id).netns();
        let request = network_request(&record, netns);
        let checked = engine.network.check(&request).await;
        // One that is being stopped meanwhile is off the network on purpose.
        if let Err(error) = checked
            && sandbox.record().network_held
        {
            let pod = format!("{}/{}", record.namespace, record.name);
            tracing::warn!(sandbox = %sandbox.id, pod, %error, "a pod is not on the network as it was added");
        }
    }
}
