//! Pods as v1 Pods.

mod asked;
mod next_try;

use std::{net::IpAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::wire::{WireContext, pod_json};
use rubelet_node_state::{
    intents::IntentBoard, node_ips::NodeIps, pod_board::PodEntry, runtime_state::RuntimeState,
};
use rubelet_pod_plan::OperatorIntents;
use rubelet_server::{Object, table::NEXT_TRY_ANNOTATION};
use serde_json::Value;
use tokio::sync::watch;

pub(super) use self::next_try::next_tries;

/// Context of the API's form of a pod besides its own status.
pub(super) struct PodContext {
    pub(super) node_ips: NodeIps,
    pub(super) intents: IntentBoard,
    pub(super) runtime: watch::Receiver<RuntimeState>,
}

/// A pod, rendered on request.
pub(super) fn object(entry: Arc<PodEntry>, context: Arc<PodContext>) -> Object {
    let name = entry.pod.name.clone();
    Object::new(&name.namespace, &name.name, move || {
        let intents = context.intents.current(&entry.pod.uid);
        let runtime = Arc::clone(&context.runtime.borrow().name);
        render(
            &entry,
            &intents.unwrap_or_default(),
            &context.node_ips.now(),
            &runtime,
        )
    })
}

/// The removal of a pod.
pub(super) struct Deletion {
    pub(super) since: Timestamp,
    /// An operator may have shortened it.
    pub(super) grace: Duration,
    pub(super) kill_at: Timestamp,
}

/// The removal of a pod, if it has begun.
pub(super) fn deletion(entry: &PodEntry, intents: &OperatorIntents) -> Option<Deletion> {
    let (since, planned) = entry.deletion?;
    Some(Deletion {
        since,
        grace: intents.grace.map_or(planned, |asked| asked.min(planned)),
        kill_at: intents.kill_at(since, planned),
    })
}

fn render(
    entry: &PodEntry,
    intents: &OperatorIntents,
    node_ips: &[IpAddr],
    runtime: &str,
) -> Value {
    let deletion = deletion(entry, intents);
    let context = WireContext {
        host_ips: node_ips,
        deletion_timestamp: deletion.as_ref().map(|deletion| deletion.kill_at),
        deletion_grace: deletion.as_ref().map(|deletion| deletion.grace),
        runtime,
    };
    let mut pod = pod_json(&entry.pod, Some(&entry.status), &context);
    asked::show(&mut pod, intents);
    let times = next_tries(entry);
    if !times.is_empty() {
        // Whole seconds, rounded up: a time must not have passed before it is due.
        let times = times.into_iter().map(|(name, at)| {
            let up = rubelet_pod_plan::after(at, Duration::from_nanos(999_999_999));
            let text = rubelet_api::wire::seconds(up);
            (name.into_string(), Value::from(text))
        });
        let times: serde_json::Map<_, _> = times.collect();
        pod["metadata"]["annotations"][NEXT_TRY_ANNOTATION] =
            Value::Object(times).to_string().into();
    }
    pod
}
