//! The columns of each kind, in their order.

use serde_json::Value;

use super::{
    age,
    column::{AGE, Column, NAME, Row, column, or, wide},
    event, node, pod,
};
use crate::{Kind, meta};

/// The columns of a kind.
pub(super) fn columns(kind: &Kind) -> &'static [Column] {
    match kind.kind {
        "Pod" => pod::COLUMNS,
        "Node" => node::COLUMNS,
        "Event" => event::COLUMNS,
        "Namespace" => NAMESPACES,
        "CertificateSigningRequest" => REQUESTS,
        "ConfigMap" => CONFIG_MAPS,
        "Secret" => SECRETS,
        "Service" => SERVICES,
        "Lease" => LEASES,
        "RuntimeClass" => RUNTIME_CLASSES,
        "CSINode" => CSI_NODES,
        "CSIDriver" => CSI_DRIVERS,
        _ => &[NAME, AGE],
    }
}

const NAMESPACES: &[Column] = &[
    NAME,
    column("Status", |row| row.text("/status/phase").into()),
    AGE,
];

const CONFIG_MAPS: &[Column] = &[
    NAME,
    column("Data", |row| {
        (row.size("/data") + row.size("/binaryData")).into()
    }),
    AGE,
];

const SECRETS: &[Column] = &[
    NAME,
    column("Type", |row| row.text("/type").into()),
    column("Data", |row| row.size("/data").into()),
    AGE,
];

const LEASES: &[Column] = &[
    NAME,
    column("Holder", |row| row.text("/spec/holderIdentity").into()),
    AGE,
];

const RUNTIME_CLASSES: &[Column] = &[
    NAME,
    column("Handler", |row| row.text("/handler").into()),
    AGE,
];

const CSI_NODES: &[Column] = &[
    NAME,
    column("Drivers", |row| row.size("/spec/drivers").into()).of("integer"),
    AGE,
];

const CSI_DRIVERS: &[Column] = &[
    NAME,
    column("AttachRequired", |row| {
        row.flag("/spec/attachRequired", true)
    })
    .of("boolean"),
    column("PodInfoOnMount", |row| {
        row.flag("/spec/podInfoOnMount", false)
    })
    .of("boolean"),
    column("StorageCapacity", |row| {
        row.flag("/spec/storageCapacity", false)
    })
    .of("boolean"),
    column("TokenRequests", |row| {
        match row.object.pointer("/spec/tokenRequests") {
            None => "<unset>".into(),
            Some(_) => row.list("/spec/tokenRequests", "/audience").into(),
        }
    }),
    column("RequiresRepublish", |row| {
        row.flag("/spec/requiresRepublish", false)
    })
    .of("boolean"),
    column("Modes", |row| {
        or(&row.list("/spec/volumeLifecycleModes", ""), "<none>")
    }),
    AGE,
];

const REQUESTS: &[Column] = &[
    NAME,
    AGE,
    column("SignerName", |row| row.or_none("/spec/signerName")),
    column("Requestor", |row| row.text("/spec/username").into()),
    column("RequestedDuration", |row| {
        let seconds = meta::number(row.object, "/spec/expirationSeconds");
        seconds.map_or_else(
            || "<none>".into(),
            |seconds| age::human(i128::from(seconds) * 1000).into(),
        )
    }),
    column("Condition", |row| request_condition(row.object).into()),
];

const SERVICES: &[Column] = &[
    NAME,
    column("Type", |row| row.text("/spec/type").into()),
    column("Cluster-IP", |row| match row.text("/spec/clusterIPs/0") {
        "" => row.or_none("/spec/clusterIP"),
        first => first.into(),
    }),
    column("External-IP", |row| service_addresses(row).into()),
    column("Port(s)", |row| or(&service_ports(row.object), "<none>")),
    AGE,
    wide("Selector", |row| {
        let selector = row.object.pointer("/spec/selector");
        let fields = selector.and_then(Value::as_object).into_iter().flatten();
        let pairs = fields.map(|(key, value)| format!("{key}={}", meta::text(value, "")));
        or(&pairs.collect::<Vec<_>>().join(","), "<none>")
    }),
];

fn service_addresses(row: Row<'_>) -> String {
    let mut all = row.list("/spec/externalIPs", "");
    match row.text("/spec/type") {
        "ExternalName" => return row.text("/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let balancers = row.list("/status/loadBalancer/ingress", "/ip");
            if all.is_empty() && balancers.is_empty() {
                return "<pending>".to_owned();
            }
            let both = [balancers, all].into_iter();
            all = both
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(",");
        }
        _ => {}
    }
    match all.as_str() {
        "" => "<none>".to_owned(),
        _ => all,
    }
}

fn service_ports(service: &Value) -> String {
    let ports = meta::entries(service, "/spec/ports").iter();
    let ports = ports.map(|port| {
        let protocol = meta::text(port, "/protocol");
        match meta::number(port, "/nodePort").filter(|port| *port > 0) {
            Some(node_port) => format!("{}:{node_port}/{protocol}", port["port"]),
            None => format!("{}/{protocol}", port["port"]),
        }
    });
    ports.collect::<Vec<_>>().join(",")
}

fn request_condition(request: &Value) -> String {
    let conditions = meta::entries(request, "/status/conditions");
    let has = |wanted: &str| conditions.iter().any(|one| one["type"] == wanted);
    let mut words = vec![match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }];
    if has("Failed") {
        words.push("Failed");
    }
    if !meta::text(request, "/status/certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}
