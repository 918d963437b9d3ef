//! The objects as the API server sends them, with the fields that are used here and no others, and
//! what becomes of them. Nothing of this can be printed: there are secrets in it.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use rubelet_api::{
    container::ObjectKind,
    objects::{ConfigMap, Data, Secret},
};
use serde::Deserialize;

use super::{
    cell::{Content, Object},
    follow::Key,
    service_env::{Service, ServicePort},
};

/// A ConfigMap, Secret, Service or RuntimeClass.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Wire {
    pub(super) metadata: Metadata,
    data: Option<BTreeMap<Box<str>, Option<Box<str>>>>,
    binary_data: Option<BTreeMap<Box<str>, Option<Box<str>>>>,
    #[serde(rename = "type")]
    kind: Option<Box<str>>,
    immutable: Option<bool>,
    handler: Option<Box<str>>,
    spec: Option<ServiceSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) name: Box<str>,
    pub(super) namespace: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServiceSpec {
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<Box<str>>,
    ports: Option<Vec<PortWire>>,
}

#[derive(Deserialize)]
struct PortWire {
    name: Option<Box<str>>,
    port: u16,
    protocol: Option<Box<str>>,
}

/// The answer to a TokenRequest.
#[derive(Deserialize)]
pub(super) struct TokenAnswer {
    pub(super) spec: TokenSpec,
    pub(super) status: TokenStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenSpec {
    #[serde(default)]
    pub(super) expiration_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenStatus {
    pub(super) token: Box<str>,
    pub(super) expiration_timestamp: Timestamp,
}

impl Wire {
    fn key(&self) -> Key {
        let namespace = self.metadata.namespace.clone();
        (namespace.unwrap_or_default(), self.metadata.name.clone())
    }
}

/// A ConfigMap.
pub(super) fn config_map(wire: Wire) -> (Key, Option<Object>) {
    (wire.key(), Some(object(ObjectKind::ConfigMap, wire)))
}

/// A Secret.
pub(super) fn secret(wire: Wire) -> (Key, Option<Object>) {
    (wire.key(), Some(object(ObjectKind::Secret, wire)))
}

/// An object of that kind.
pub(super) fn object(kind: ObjectKind, wire: Wire) -> Object {
    let content = match kind {
        ObjectKind::ConfigMap => Content::ConfigMap(Arc::new(ConfigMap {
            data: texts(wire.data),
            binary_data: decoded(wire.binary_data),
        })),
        ObjectKind::Secret => Content::Secret(Arc::new(Secret {
            kind: wire.kind.unwrap_or_default(),
            data: decoded(wire.data),
        })),
    };
    Object {
        content,
        immutable: wire.immutable.unwrap_or(false),
    }
}

/// A Service; nothing where it has no address of its own.
pub(super) fn service(wire: Wire) -> (Key, Option<Arc<Service>>) {
    let key = wire.key();
    let spec = wire.spec.unwrap_or_default();
    let ip = spec.cluster_ip.filter(|ip| !matches!(&**ip, "" | "None"));
    let ports = spec.ports.unwrap_or_default().into_iter();
    let service = ip.map(|ip| {
        Arc::new(Service {
            name: key.1.clone(),
            ip,
            ports: ports
                .map(|port| ServicePort {
                    name: port.name.unwrap_or_default(),
                    port: port.port,
                    protocol: port.protocol.unwrap_or_else(|| "TCP".into()),
                })
                .collect(),
        })
    });
    (key, service)
}

/// The handler of a RuntimeClass.
pub(super) fn runtime_class(wire: Wire) -> (Key, Option<Box<str>>) {
    (wire.key(), Some(wire.handler.unwrap_or_default()))
}

fn texts(data: Option<BTreeMap<Box<str>, Option<Box<str>>>>) -> Data {
    let entries = data.unwrap_or_default().into_iter();
    entries
        .map(|(key, text)| (key, text.unwrap_or_default().as_bytes().into()))
        .collect()
}

/// The API server takes no key that is not base64.
fn decoded(data: Option<BTreeMap<Box<str>, Option<Box<str>>>>) -> Data {
    let entries = data.unwrap_or_default().into_iter();
    entries
        .filter_map(|(key, text)| {
            let bytes = STANDARD.decode(text.unwrap_or_default().as_bytes()).ok()?;
            Some((key, bytes.into()))
        })
        .collect()
}
