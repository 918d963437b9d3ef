//! Events as core/v1 Events.

use jiff::Timestamp;
use rubelet_kubelet::events::{Event, Subject};
use serde_json::{Value, json};

use super::state::Outgoing;

/// The longest name that an object may have.
const MAX_NAME: usize = 253;

/// The namespace of an event: that of its pod, `default` where the object has none.
pub(super) fn namespace(event: &Event) -> &str {
    match &event.subject {
        Subject::Pod { name, .. } => &name.namespace,
        Subject::Manifest(_) | Subject::Node(_) => "default",
    }
}

/// `metadata.name`. The recorder puts a number behind the object's name, which may make it too
/// long; the number is what tells two events apart.
pub(super) fn name(name: &str) -> &str {
    let start = name.len().saturating_sub(MAX_NAME);
    name.get(start..)
        .unwrap_or(name)
        .trim_start_matches(['.', '-'])
}

/// The whole event.
pub(super) fn object(outgoing: &Outgoing, node_name: &str) -> Value {
    let event = &outgoing.event;
    let mut message = outgoing.message.to_string();
    let involved = match &event.subject {
        Subject::Pod {
            name,
            uid,
            field_path,
        } => {
            let mut involved = json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": *name.namespace,
                "name": *name.name,
            });
            if let Some(uid) = uid {
                involved["uid"] = uid.as_str().into();
            }
            if !field_path.is_empty() {
                involved["fieldPath"] = field_path.to_string().into();
            }
            involved
        }
        // A manifest is no object of the cluster: what is said of it, is said of its node.
        Subject::Manifest(origin) => {
            if !message.contains(&**origin) {
                message = format!("{origin}: {message}");
            }
            node(node_name)
        }
        Subject::Node(name) => node(name),
    };
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name(&outgoing.name), "namespace": namespace(event) },
        "involvedObject": involved,
        "reason": *event.reason,
        "message": message,
        "source": { "component": "kubelet", "host": node_name },
        "firstTimestamp": seconds(outgoing.first),
        "lastTimestamp": seconds(event.last),
        "count": outgoing.count,
        "type": event.kind.as_str(),
        "eventTime": null,
        "reportingComponent": "kubelet",
        "reportingInstance": node_name,
    })
}

/// By this UID `kubectl describe node` looks for what the node says of itself.
fn node(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": name })
}

/// What changes when it happens again.
pub(super) fn patch(outgoing: &Outgoing) -> Value {
    let mut patch = json!({
        "count": outgoing.count,
        "lastTimestamp": seconds(outgoing.event.last),
    });
    if outgoing.message != outgoing.event.message {
        patch["message"] = outgoing.message.to_string().into();
    }
    patch
}

/// RFC 3339 in whole seconds, as the API writes times.
fn seconds(at: Timestamp) -> Value {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}
