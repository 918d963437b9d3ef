//! Events as v1 Events.

use std::sync::Arc;

use rubelet_api::wire::seconds;
use rubelet_node_state::events::{Event, Subject, annotate, pod_reference};
use rubelet_server::Object;
use serde_json::{Value, json};

/// An event, rendered on request.
pub(super) fn object(event: Arc<Event>, node_name: Arc<str>) -> Object {
    let namespace = event.subject.namespace().to_owned();
    let name = event.name.clone();
    Object::new(&namespace.clone(), &name, move || {
        render(&event, &namespace, &node_name)
    })
}

fn render(event: &Event, namespace: &str, node_name: &str) -> Value {
    let involved = match &event.subject {
        Subject::Pod {
            name,
            uid,
            field_path,
        } => pod_reference(name, uid.as_ref(), field_path),
        Subject::Manifest(origin) => json!({
            "apiVersion": "node.rubelet.dev/v1alpha1",
            "kind": "Manifest",
            "name": **origin,
        }),
        Subject::Node(name) => json!({ "apiVersion": "v1", "kind": "Node", "name": **name }),
    };
    let mut metadata = json!({
        "name": *event.name,
        "namespace": namespace,
        "creationTimestamp": seconds(event.first),
    });
    annotate(&mut metadata, event);
    json!({
        "metadata": metadata,
        "involvedObject": involved,
        "reason": *event.reason,
        "message": *event.message,
        "type": event.kind.as_str(),
        "source": { "component": "kubelet", "host": node_name },
        "reportingComponent": "kubelet",
        "reportingInstance": node_name,
        "firstTimestamp": seconds(event.first),
        "lastTimestamp": seconds(event.last),
        "count": event.count,
        "eventTime": Value::Null,
    })
}
