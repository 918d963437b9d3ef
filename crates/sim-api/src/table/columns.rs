//! The columns of each kind between name and age.

use serde_json::Value;

use crate::{Kind, meta};

/// A column between name and age.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) cell: fn(&Value) -> String,
    /// For `-o wide` only; these stand after the age.
    pub(super) wide: bool,
}

const fn column(name: &'static str, cell: fn(&Value) -> String) -> Column {
    Column {
        name,
        cell,
        wide: false,
    }
}

const fn wide(name: &'static str, cell: fn(&Value) -> String) -> Column {
    Column {
        wide: true,
        ..column(name, cell)
    }
}

/// The columns of a kind; many have none.
pub(super) fn own_columns(kind: &Kind) -> &'static [Column] {
    match kind.storage {
        "nodes" => NODES,
        "namespaces" => NAMESPACES,
        "certificatesigningrequests" => REQUESTS,
        "configmaps" => CONFIG_MAPS,
        "secrets" => SECRETS,
        "services" => SERVICES,
        "serviceaccounts" => ACCOUNTS,
        "leases" => LEASES,
        "runtimeclasses" => RUNTIME_CLASSES,
        _ => &[],
    }
}

const NODES: &[Column] = &[
    column("Status", node_status),
    column("Roles", node_roles),
    column("Version", |node| {
        text(node, "/status/nodeInfo/kubeletVersion")
    }),
    wide("Internal-IP", |node| {
        let mut addresses = meta::entries(node, "/status/addresses").iter();
        let found = addresses.find(|address| address["type"] == "InternalIP");
        found.map_or_else(|| "<none>".to_owned(), |found| text(found, "/address"))
    }),
    wide("OS-Image", |node| text(node, "/status/nodeInfo/osImage")),
    wide("Kernel-Version", |node| {
        text(node, "/status/nodeInfo/kernelVersion")
    }),
    wide("Container-Runtime", |node| {
        text(node, "/status/nodeInfo/containerRuntimeVersion")
    }),
];

const NAMESPACES: &[Column] = &[column("Status", |object| text(object, "/status/phase"))];

const REQUESTS: &[Column] = &[
    column("SignerName", |object| text(object, "/spec/signerName")),
    column("Requestor", |object| text(object, "/spec/username")),
    column("Condition", request_condition),
];

const CONFIG_MAPS: &[Column] = &[column("Data", |object| size(object, "/data"))];

const SECRETS: &[Column] = &[
    column("Type", |object| text(object, "/type")),
    column("Data", |object| size(object, "/data")),
];

const SERVICES: &[Column] = &[
    column("Type", |object| text(object, "/spec/type")),
    column("Cluster-IP", |object| text(object, "/spec/clusterIP")),
    column("External-IP", |_| "<none>".to_owned()),
    column("Port(s)", service_ports),
];

const ACCOUNTS: &[Column] = &[column("Secrets", |account| {
    meta::entries(account, "/secrets").len().to_string()
})];

const LEASES: &[Column] = &[column("Holder", |object| {
    text(object, "/spec/holderIdentity")
})];

const RUNTIME_CLASSES: &[Column] = &[column("Handler", |object| text(object, "/handler"))];

fn text(object: &Value, pointer: &str) -> String {
    match meta::text(object, pointer) {
        "" => "<none>".to_owned(),
        text => text.to_owned(),
    }
}

fn size(object: &Value, pointer: &str) -> String {
    let fields = object.pointer(pointer).and_then(Value::as_object);
    fields.map_or(0, serde_json::Map::len).to_string()
}

fn service_ports(service: &Value) -> String {
    let ports = meta::entries(service, "/spec/ports").iter();
    let ports: Vec<String> = ports
        .map(|port| format!("{}/{}", port["port"], meta::text(port, "/protocol")))
        .collect();
    if ports.is_empty() {
        return "<none>".to_owned();
    }
    ports.join(",")
}

fn node_status(node: &Value) -> String {
    let mut conditions = meta::entries(node, "/status/conditions").iter();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    let mut status = match ready.map(|ready| meta::text(ready, "/status")) {
        Some("True") => "Ready",
        Some("False") => "NotReady",
        _ => "Unknown",
    }
    .to_owned();
    if meta::flag(node, "/spec/unschedulable") {
        status += ",SchedulingDisabled";
    }
    status
}

fn node_roles(node: &Value) -> String {
    const PREFIX: &str = "node-role.kubernetes.io/";
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let keys = labels.into_iter().flat_map(|labels| labels.keys());
    let roles: Vec<&str> = keys.filter_map(|key| key.strip_prefix(PREFIX)).collect();
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.join(",")
}

fn request_condition(request: &Value) -> String {
    let conditions = meta::entries(request, "/status/conditions");
    let mut words: Vec<&str> = conditions
        .iter()
        .map(|condition| meta::text(condition, "/type"))
        .collect();
    if words.is_empty() {
        words.push("Pending");
    }
    if !meta::text(request, "/status/certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}
