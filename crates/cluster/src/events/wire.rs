//! Events as core/v1 Events.

use rubelet_api::wire::seconds;
use rubelet_node_state::events::{Subject, annotate, pod_reference};
use serde_json::{Value, json};

use super::state::OutgoingEvent;

/// The longest name that an object may have.
const MAX_NAME: usize = 253;

/// `metadata.name`. The recorder appends a number to the object's name, which may make it too long;
/// the number is what tells two events apart.
pub(super) fn name(name: &str) -> &str {
    let start = name.len().saturating_sub(MAX_NAME);
    name.get(start..)
        .unwrap_or(name)
        .trim_start_matches(['.', '-'])
}

/// The whole event.
pub(super) fn object(outgoing: &OutgoingEvent, node_name: &str) -> Value {
    let event = &outgoing.event;
    let mut message = outgoing.message.to_string();
    let involved = match &event.subject {
        Subject::Pod {
            name,
            uid,
            field_path,
        } => pod_reference(name, uid.as_ref(), field_path),
        // A manifest is no object of the cluster: its events are those of its node.
        Subject::Manifest(origin) => {
            if !message.contains(&**origin) {
                message = format!("{origin}: {message}");
            }
            node(node_name)
        }
        Subject::Node(name) => node(name),
    };
    let mut metadata =
        json!({ "name": name(&outgoing.name), "namespace": event.subject.namespace() });
    annotate(&mut metadata, event);
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": involved,
        "reason": *event.reason,
        "message": message,
        "source": { "component": "kubelet", "host": node_name },
        "firstTimestamp": seconds(outgoing.first),
        "lastTimestamp": seconds(event.last),
        "count": outgoing.count,
        "type": event.kind.as_str(),
        "reportingComponent": "kubelet",
        "reportingInstance": node_name,
    })
}

/// `kubectl describe node` finds the node's own events by this UID.
fn node(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": name })
}

/// The patch for an event that happens again.
pub(super) fn patch(outgoing: &OutgoingEvent) -> Value {
    let mut patch = json!({
        "count": outgoing.count,
        "lastTimestamp": seconds(outgoing.event.last),
    });
    if outgoing.message != outgoing.event.message {
        patch["message"] = outgoing.message.to_string().into();
    }
    patch
}
