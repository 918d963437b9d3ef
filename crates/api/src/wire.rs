//! Pods and their status in the Kubernetes form.

mod resources;
mod spec;
mod status;

use core::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    pod::{Pod, PodSource},
    resources::QosClass,
    status::{Condition, ContainerState, ContainerStatus, PodStatus, Terminated},
};

pub use status::status_from_json;

/// What the Kubernetes form shows beside specification and status.
#[derive(Debug, Clone, Copy, Default)]
pub struct WireContext<'a> {
    /// The node's addresses, the primary one first.
    pub host_ips: &'a [IpAddr],
    /// `metadata.deletionTimestamp`: when the grace period of a pod that is ending is over.
    pub deletion_timestamp: Option<Timestamp>,
    /// `metadata.deletionGracePeriodSeconds`.
    pub deletion_grace: Option<Duration>,
    /// What the runtime calls itself, such as `containerd`: identifiers of containers are written
    /// as `containerd://ID`. Empty while it is not known; then there are none.
    pub runtime: &'a str,
}

/// The pod as a v1 Pod. A static pod counts as created when the agent first saw it, which a restart
/// of the agent does not change.
#[must_use]
pub fn pod_json(pod: &Pod, status: Option<&PodStatus>, context: &WireContext<'_>) -> Value {
    let mut value: Value = serde_json::from_str(&pod.json).unwrap_or_else(|_| json!({}));
    let metadata = &mut value["metadata"];
    if let (Some(status), true) = (status, pod.source != PodSource::Api) {
        metadata["creationTimestamp"] = time(status.start_time);
        if status.observed_generation != 0 {
            metadata["generation"] = status.observed_generation.into();
        }
    }
    if let Some(deletion) = context.deletion_timestamp {
        metadata["deletionTimestamp"] = time(deletion);
    }
    if let Some(grace) = context.deletion_grace {
        metadata["deletionGracePeriodSeconds"] = grace.as_secs().into();
    }
    value["status"] = match status {
        Some(status) => with_spec(pod, &value["spec"], status, context),
        None => json!({"phase": "Pending", "qosClass": pod.spec.qos.as_str()}),
    };
    value
}

/// The status of a pod as a v1 PodStatus, whole.
#[must_use]
pub fn pod_status_json(pod: &Pod, status: &PodStatus, context: &WireContext<'_>) -> Value {
    let written: Value = serde_json::from_str(&pod.json).unwrap_or_default();
    with_spec(pod, &written["spec"], status, context)
}

fn with_spec(pod: &Pod, spec: &Value, status: &PodStatus, context: &WireContext<'_>) -> Value {
    let mut json = status_json(status, pod.spec.qos, context);
    spec::add(&mut json, spec, status);
    resources::add(&mut json, &pod.spec, status.phase);
    json
}

/// The status as a v1 PodStatus, without what it repeats of the specification.
#[must_use]
pub fn status_json(status: &PodStatus, qos: QosClass, context: &WireContext<'_>) -> Value {
    let host_ips = context.host_ips;
    let mut fields = Map::new();
    fields.insert("phase".to_owned(), status.phase.as_str().into());
    generation(&mut fields, status.observed_generation);
    text(&mut fields, "reason", &status.reason);
    text(&mut fields, "message", &status.message);
    let conditions: Vec<Value> = status.conditions.iter().map(condition).collect();
    fields.insert("conditions".to_owned(), conditions.into());
    if let Some(primary) = host_ips.first() {
        fields.insert("hostIP".to_owned(), primary.to_string().into());
        let all: Vec<Value> = host_ips
            .iter()
            .map(|ip| json!({"ip": ip.to_string()}))
            .collect();
        fields.insert("hostIPs".to_owned(), all.into());
    }
    if let Some(primary) = status.pod_ips.first() {
        fields.insert("podIP".to_owned(), primary.as_ref().into());
        let all: Vec<Value> = status.pod_ips.iter().map(|ip| json!({"ip": ip})).collect();
        fields.insert("podIPs".to_owned(), all.into());
    }
    fields.insert("startTime".to_owned(), time(status.start_time));
    for (name, containers) in [
        ("initContainerStatuses", &status.init_containers),
        ("containerStatuses", &status.containers),
        ("ephemeralContainerStatuses", &status.ephemeral_containers),
    ] {
        if !containers.is_empty() {
            let containers = containers.iter();
            let containers: Vec<Value> = containers
                .map(|one| container(one, context.runtime))
                .collect();
            fields.insert(name.to_owned(), containers.into());
        }
    }
    fields.insert("qosClass".to_owned(), qos.as_str().into());
    Value::Object(fields)
}

/// RFC 3339 in whole seconds, as Kubernetes writes times.
#[must_use]
pub fn seconds(timestamp: Timestamp) -> String {
    timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn time(timestamp: Timestamp) -> Value {
    seconds(timestamp).into()
}

fn text(fields: &mut Map<String, Value>, name: &str, value: &str) {
    if !value.is_empty() {
        fields.insert(name.to_owned(), value.into());
    }
}

fn generation(fields: &mut Map<String, Value>, value: i64) {
    if value != 0 {
        fields.insert("observedGeneration".to_owned(), value.into());
    }
}

fn condition(condition: &Condition) -> Value {
    let mut fields = Map::new();
    fields.insert("type".to_owned(), condition.kind.as_ref().into());
    fields.insert("status".to_owned(), condition.status.as_str().into());
    generation(&mut fields, condition.observed_generation);
    fields.insert("lastProbeTime".to_owned(), Value::Null);
    fields.insert(
        "lastTransitionTime".to_owned(),
        time(condition.last_transition),
    );
    text(&mut fields, "reason", &condition.reason);
    text(&mut fields, "message", &condition.message);
    Value::Object(fields)
}

/// `containerID`: the runtime's name is its scheme. Without it the identifier would be another one.
fn container_id(fields: &mut Map<String, Value>, id: &str, runtime: &str) {
    match (id, runtime) {
        ("", _) | (_, "") => {}
        (id, runtime) => text(fields, "containerID", &format!("{runtime}://{id}")),
    }
}

fn container(status: &ContainerStatus, runtime: &str) -> Value {
    let last_state = match &status.last_state {
        Some(ended) => json!({"terminated": terminated(ended, runtime)}),
        None => json!({}),
    };
    let mut value = json!({
        "name": status.name,
        "state": state(&status.state, runtime),
        "lastState": last_state,
        "ready": status.ready,
        "restartCount": status.restart_count,
        "image": status.image,
        "imageID": status.image_id,
        "started": status.started,
    });
    if let Some(fields) = value.as_object_mut() {
        container_id(fields, &status.container_id, runtime);
        if let Some(user) = &status.user {
            fields.insert("user".to_owned(), json!({ "linux": user }));
        }
    }
    value
}

fn state(state: &ContainerState, runtime: &str) -> Value {
    match state {
        ContainerState::Waiting { reason, message } => {
            let mut fields = Map::new();
            text(&mut fields, "reason", reason);
            text(&mut fields, "message", message);
            json!({"waiting": fields})
        }
        ContainerState::Running { started_at } => {
            json!({"running": {"startedAt": time(*started_at)}})
        }
        ContainerState::Terminated(ended) => json!({"terminated": terminated(ended, runtime)}),
    }
}

fn terminated(ended: &Terminated, runtime: &str) -> Value {
    let mut fields = Map::new();
    fields.insert("exitCode".to_owned(), ended.exit_code.into());
    text(&mut fields, "reason", &ended.reason);
    text(&mut fields, "message", &ended.message);
    fields.insert(
        "startedAt".to_owned(),
        ended.started_at.map_or(Value::Null, time),
    );
    fields.insert(
        "finishedAt".to_owned(),
        ended.finished_at.map_or(Value::Null, time),
    );
    container_id(&mut fields, &ended.container_id, runtime);
    Value::Object(fields)
}
