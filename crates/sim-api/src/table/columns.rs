//! The columns of each kind, in their order.

use jiff::Timestamp;
use serde_json::Value;

use super::{age, event, node, pod};
use crate::{Kind, meta};

/// What a cell is made from.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(super) fn text(self, place: &str) -> &'a str {
        meta::text(self.object, place)
    }

    /// The text, or `<none>`.
    pub(super) fn or_none(self, place: &str) -> Value {
        or(self.text(place), "<none>")
    }

    /// Time since the one that stands there.
    pub(super) fn since(self, place: &str) -> String {
        age::since(self.text(place).parse().ok(), self.now)
    }

    fn size(self, place: &str) -> usize {
        match self.object.pointer(place) {
            Some(Value::Object(fields)) => fields.len(),
            Some(Value::Array(entries)) => entries.len(),
            _ => 0,
        }
    }

    fn flag(self, place: &str, usual: bool) -> Value {
        let found = self.object.pointer(place).and_then(Value::as_bool);
        found.unwrap_or(usual).into()
    }

    fn list(self, place: &str, field: &str) -> String {
        let entries = meta::entries(self.object, place).iter();
        let texts = entries.map(|entry| meta::text(entry, field));
        texts.collect::<Vec<_>>().join(",")
    }
}

pub(super) fn or(text: &str, otherwise: &str) -> Value {
    match text {
        "" => otherwise.into(),
        text => text.into(),
    }
}

/// A column.
pub(super) struct Column {
    pub(super) name: &'static str,
    /// The type of its cells.
    pub(super) kind: &'static str,
    pub(super) format: &'static str,
    pub(super) cell: fn(Row<'_>) -> Value,
    /// For `-o wide` only.
    pub(super) wide: bool,
}

pub(super) const fn column(name: &'static str, cell: fn(Row<'_>) -> Value) -> Column {
    Column {
        name,
        kind: "string",
        format: "",
        cell,
        wide: false,
    }
}

pub(super) const fn wide(name: &'static str, cell: fn(Row<'_>) -> Value) -> Column {
    Column {
        wide: true,
        ..column(name, cell)
    }
}

impl Column {
    const fn of(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    pub(super) const fn named(self) -> Self {
        Self {
            format: "name",
            ..self
        }
    }
}

pub(super) const NAME: Column = column("Name", |row| row.text("/metadata/name").into()).named();

pub(super) const AGE: Column = column("Age", |row| row.since("/metadata/creationTimestamp").into());

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
