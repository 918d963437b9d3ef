//! Checks that adopted pods are still on their networks: another program may have flushed rules or
//! removed interfaces while no runtime ran.

use std::{collections::BTreeMap, sync::Arc};

use super::RecordedState;
use crate::{
    engine::Engine,
    live_shim::LiveShim,
    sandbox::{Sandbox, network_request},
};

/// The adopted sandboxes with a network of their own: those whose shims are not among the leftover
/// ones.
pub(super) fn to_check(
    known: &RecordedState,
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

/// Checks one after the other, once: a plugin is a process, and starting pods need the processor
/// more. Failures are logged, and remain in the network's warnings until the pod is removed.
pub(super) async fn check(engine: Arc<Engine>, sandboxes: Vec<Arc<Sandbox>>) {
    for sandbox in sandboxes {
        let record = sandbox.record();
        if !record.network_held {
            continue;
        }
        let netns = engine.layout.sandbox(&sandbox.id).netns();
        let request = network_request(&record, netns);
        let checked = engine.network.check(&request).await;
        // A pod that was stopped meanwhile is off the network on purpose.
        if let Err(error) = checked
            && sandbox.record().network_held
        {
            let pod = format!("{}/{}", record.namespace, record.name);
            tracing::warn!(sandbox = %sandbox.id, pod, %error, "The network of a running pod is damaged");
        }
    }
}
