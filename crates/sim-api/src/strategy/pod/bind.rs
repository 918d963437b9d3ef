//! Binding: a pod gets its node.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{clock, meta};

/// The pod, bound to the node.
pub(crate) fn bind(pod: &Value, node: &str, now: Timestamp) -> Value {
    let mut bound = pod.clone();
    bound["spec"]["nodeName"] = node.into();
    let mut conditions = meta::entries(pod, "/status/conditions").to_vec();
    conditions.retain(|condition| condition["type"] != "PodScheduled");
    conditions.push(json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": clock::seconds(now),
    }));
    bound["status"]["conditions"] = conditions.into();
    meta::drop_nulls(&mut bound);
    bound
}
