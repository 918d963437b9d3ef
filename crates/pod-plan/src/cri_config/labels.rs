//! Labels and annotations that identify a pod's sandboxes and containers in the runtime.
//!
//! Source of the names: the kubelet's `kubetypes` package; every tool that inspects a node's
//! runtime relies on them.

use std::collections::BTreeMap;

use rubelet_api::{
    container::{Container, TerminationMessagePolicy},
    network::Protocol,
    pod::Pod,
};

use crate::definition::{self, DEFINITION_ANNOTATION};

/// Label: name of the pod.
pub const POD_NAME: &str = "io.kubernetes.pod.name";
/// Label: namespace of the pod.
pub const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
/// Label: UID of the pod.
pub const POD_UID: &str = "io.kubernetes.pod.uid";
/// Label: name of the container in the pod.
pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";
/// Annotation: upstream's hash over name and image.
pub const CONTAINER_HASH: &str = "io.kubernetes.container.hash";
/// Annotation: restart count at creation.
pub const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
/// Annotation: where the container writes its termination message.
pub const TERMINATION_PATH: &str = "io.kubernetes.container.terminationMessagePath";
/// Annotation: the termination message policy.
pub const TERMINATION_POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";
/// Annotation: ports as JSON.
pub const PORTS: &str = "io.kubernetes.container.ports";
/// Annotation: the preStop hook, the JSON of a v1 LifecycleHandler.
pub const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";
/// Annotation: the grace period in seconds of a pod that was being deleted when the container was
/// created; takes precedence over [`GRACE_PERIOD`].
pub const DELETION_GRACE_PERIOD: &str = "io.kubernetes.pod.deletionGracePeriod";
/// Annotation: the pod's termination grace period in seconds.
pub const GRACE_PERIOD: &str = "io.kubernetes.pod.terminationGracePeriod";

/// Annotation of a precreated container: the runtime's identifier of the previous instance, whose
/// exit was not reported yet.
pub const PRECREATED_AFTER: &str = "rubelet.dev/ahead-of";

/// Labels of a sandbox: the pod's own and the three that identify it.
#[must_use]
pub(crate) fn sandbox_labels(pod: &Pod) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = pod
        .labels
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    labels.extend(identity(pod));
    labels
}

/// Annotations of a sandbox: the pod's own and its definition.
#[must_use]
pub(crate) fn sandbox_annotations(pod: &Pod) -> BTreeMap<String, String> {
    let mut annotations: BTreeMap<String, String> = pod
        .annotations
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    if let Some(definition) = definition::sandbox_definition(pod) {
        annotations.insert(DEFINITION_ANNOTATION.to_owned(), definition.into());
    }
    annotations
}

/// Labels of a container.
#[must_use]
pub(crate) fn container_labels(pod: &Pod, container: &Container) -> BTreeMap<String, String> {
    let mut labels = identity(pod);
    labels.insert(CONTAINER_NAME.to_owned(), container.name.to_string());
    labels
}

/// Annotations of a container.
#[must_use]
pub(crate) fn container_annotations(
    pod: &Pod,
    container: &Container,
    restart_count: u32,
) -> BTreeMap<String, String> {
    let policy = match container.termination_message_policy {
        TerminationMessagePolicy::File => "File",
        TerminationMessagePolicy::FallbackToLogsOnError => "FallbackToLogsOnError",
    };
    let mut annotations = BTreeMap::from([
        (CONTAINER_HASH.to_owned(), container.hash.to_string()),
        (RESTART_COUNT.to_owned(), restart_count.to_string()),
        (
            TERMINATION_PATH.to_owned(),
            container.termination_message_path.to_string(),
        ),
        (TERMINATION_POLICY.to_owned(), policy.to_owned()),
        (
            GRACE_PERIOD.to_owned(),
            pod.spec.termination_grace_period.as_secs().to_string(),
        ),
    ]);
    if !container.ports.is_empty() {
        annotations.insert(PORTS.to_owned(), ports_json(container));
    }
    let lifecycle = container.lifecycle.as_ref();
    if let Some(json) = lifecycle.and_then(|lifecycle| lifecycle.pre_stop_json.as_ref()) {
        annotations.insert(PRE_STOP.to_owned(), json.to_string());
    }
    if let Some(definition) = &container.definition {
        annotations.insert(DEFINITION_ANNOTATION.to_owned(), definition.0.to_string());
    }
    annotations
}

fn identity(pod: &Pod) -> BTreeMap<String, String> {
    BTreeMap::from([
        (POD_NAME.to_owned(), pod.name.name.to_string()),
        (POD_NAMESPACE.to_owned(), pod.name.namespace.to_string()),
        (POD_UID.to_owned(), pod.uid.as_str().to_owned()),
    ])
}

fn ports_json(container: &Container) -> String {
    let ports: Vec<serde_json::Value> = container
        .ports
        .iter()
        .map(|port| {
            let mut json = serde_json::Map::new();
            if let Some(name) = &port.name {
                json.insert("name".to_owned(), name.to_string().into());
            }
            if let Some(host_port) = port.host_port {
                json.insert("hostPort".to_owned(), host_port.into());
            }
            json.insert("containerPort".to_owned(), port.container_port.into());
            let protocol = match port.protocol {
                Protocol::Tcp => "TCP",
                Protocol::Udp => "UDP",
                Protocol::Sctp => "SCTP",
            };
            json.insert("protocol".to_owned(), protocol.into());
            if let Some(ip) = &port.host_ip {
                json.insert("hostIP".to_owned(), ip.to_string().into());
            }
            serde_json::Value::Object(json)
        })
        .collect();
    serde_json::Value::Array(ports).to_string()
}
