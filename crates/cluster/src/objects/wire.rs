//! The objects as the API server sends them, with the fields that are used here and no others, and
//! their conversion. None of these types is `Debug`: they hold secrets.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use rubelet_api::{
    container::ObjectKind,
    objects::{ConfigMap, ObjectData, Secret},
};
use rubelet_node_state::objects::ServiceAccount;
use serde::Deserialize;
use serde_json::Value;

use super::{
    object_content::{Content, Object},
    service_env::{Service, ServicePort},
};

/// Namespace, empty for what is in none, and name.
pub(super) type Key = (Box<str>, Box<str>);

/// A ConfigMap, Secret, Service or RuntimeClass.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WireObject {
    pub(super) metadata: Metadata,
    data: BTreeMap<Box<str>, Box<str>>,
    binary_data: BTreeMap<Box<str>, Box<str>>,
    #[serde(rename = "type")]
    kind: Box<str>,
    immutable: bool,
    handler: Value,
    spec: ServiceSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
    uid: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServiceSpec {
    #[serde(rename = "clusterIP")]
    cluster_ip: Box<str>,
    ports: Vec<WirePort>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePort {
    name: Box<str>,
    port: u16,
    protocol: Box<str>,
}

/// A ServiceAccount.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WireAccount {
    metadata: AccountMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccountMetadata {
    uid: Box<str>,
    annotations: BTreeMap<String, String>,
}

impl WireAccount {
    /// The fields that image pulls use.
    pub(super) fn account(self) -> ServiceAccount {
        ServiceAccount {
            uid: self.metadata.uid,
            annotations: self.metadata.annotations,
        }
    }
}

/// The response to a TokenRequest; token and expiration are required.
#[derive(Deserialize)]
pub(super) struct WireTokenRequest {
    #[serde(default)]
    pub(super) spec: TokenSpec,
    pub(super) status: TokenStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TokenSpec {
    pub(super) expiration_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenStatus {
    pub(super) token: Box<str>,
    pub(super) expiration_timestamp: Timestamp,
}

impl WireObject {
    fn key(&self) -> Key {
        let Metadata {
            name, namespace, ..
        } = &self.metadata;
        (namespace.clone(), name.clone())
    }
}

/// A ConfigMap.
pub(super) fn config_map(wire: WireObject) -> (Key, Option<Object>) {
    (wire.key(), Some(object(ObjectKind::ConfigMap, wire)))
}

/// A Secret.
pub(super) fn secret(wire: WireObject) -> (Key, Option<Object>) {
    (wire.key(), Some(object(ObjectKind::Secret, wire)))
}

/// An object of that kind.
pub(super) fn object(kind: ObjectKind, wire: WireObject) -> Object {
    let content = match kind {
        ObjectKind::ConfigMap => Content::ConfigMap(Arc::new(ConfigMap {
            data: texts(wire.data),
            binary_data: decoded(wire.binary_data),
        })),
        ObjectKind::Secret => Content::Secret(Arc::new(Secret {
            kind: wire.kind,
            data: decoded(wire.data),
        })),
    };
    Object {
        uid: wire.metadata.uid,
        content,
        immutable: wire.immutable,
    }
}

/// A Service; nothing where it has no address of its own.
pub(super) fn service(wire: WireObject) -> (Key, Option<Arc<Service>>) {
    let key = wire.key();
    let spec = wire.spec;
    let ip = Some(spec.cluster_ip).filter(|ip| !matches!(&**ip, "" | "None"));
    let ports = spec.ports.into_iter();
    let service = ip.map(|ip| {
        Arc::new(Service {
            name: key.1.clone(),
            ip,
            ports: ports
                .map(|port| ServicePort {
                    name: port.name,
                    port: port.port,
                    protocol: match &*port.protocol {
                        "" => "TCP".into(),
                        _ => port.protocol,
                    },
                })
                .collect(),
        })
    });
    (key, service)
}

/// The handler of a RuntimeClass; nothing where it is no text. If it were treated as absent, the
/// runtime's default would be used, which may isolate a pod less than the requested one.
pub(super) fn runtime_class(wire: WireObject) -> (Key, Option<Box<str>>) {
    let key = wire.key();
    let handler = match wire.handler {
        Value::Null => Some("".into()),
        Value::String(handler) => Some(handler.into()),
        _ => None,
    };
    (key, handler)
}

fn texts(data: BTreeMap<Box<str>, Box<str>>) -> ObjectData {
    let entries = data.into_iter();
    entries
        .map(|(key, text)| (key, text.as_bytes().into()))
        .collect()
}

/// The API server takes no key that is not base64.
fn decoded(data: BTreeMap<Box<str>, Box<str>>) -> ObjectData {
    let entries = data.into_iter();
    entries
        .filter_map(|(key, text)| {
            let bytes = STANDARD.decode(text.as_bytes()).ok()?;
            Some((key, bytes.into()))
        })
        .collect()
}
