//! Records on disk of the objects that pods reference. None of their types can be printed.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use rubelet_api::{
    container::ObjectKind,
    objects::{ConfigMap, ObjectData, Secret},
};
use rubelet_store::{Migration, Stored};
use serde::{Deserialize, Serialize};

use super::{
    object_content::{Content, Object},
    object_key::ObjectKey,
    object_refs::TokenRequest,
    service_env::Service,
};

/// Contents in base64, by key.
type Encoded = BTreeMap<Box<str>, String>;

/// One config map or secret.
#[derive(Serialize, Deserialize)]
pub(super) struct ObjectRecord {
    namespace: Box<str>,
    name: Box<str>,
    #[serde(default)]
    uid: Box<str>,
    /// `type` of a secret; `None`: it is a config map.
    secret_type: Option<Box<str>>,
    immutable: bool,
    data: Encoded,
    #[serde(default)]
    binary_data: Encoded,
}

/// The tokens of one pod, and its service account.
#[derive(Serialize, Deserialize)]
pub(super) struct TokensRecord {
    /// Each with its request.
    pub(super) tokens: Vec<(TokenRequest, HeldToken)>,
    /// Only of pods whose images are pulled with such tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<AccountRecord>,
}

/// A service account.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AccountRecord {
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// A token.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct HeldToken {
    /// The token itself.
    pub(super) token: Box<str>,
    /// The time of expiry.
    pub(super) expires_at: Timestamp,
    /// Its total lifetime, in seconds, as the API server reports it.
    pub(super) seconds: Option<u64>,
}

/// The services that variables are made of, with their namespaces.
#[derive(Serialize, Deserialize)]
pub(super) struct ServicesRecord {
    pub(super) services: Vec<(Box<str>, Service)>,
}

/// The handlers of runtime classes.
#[derive(Serialize, Deserialize)]
pub(super) struct ClassesRecord {
    pub(super) handlers: BTreeMap<Box<str>, Box<str>>,
}

impl Stored for ObjectRecord {
    const KIND: &'static str = "drawn-object";
    const MIGRATIONS: &'static [Migration] = &[];
}

impl Stored for TokensRecord {
    const KIND: &'static str = "drawn-tokens";
    const MIGRATIONS: &'static [Migration] = &[];
}

impl Stored for ServicesRecord {
    const KIND: &'static str = "drawn-services";
    const MIGRATIONS: &'static [Migration] = &[];
}

impl Stored for ClassesRecord {
    const KIND: &'static str = "drawn-runtimeclasses";
    const MIGRATIONS: &'static [Migration] = &[];
}

impl ObjectRecord {
    pub(super) fn new(key: &ObjectKey, object: &Object) -> Self {
        let (secret_type, data, binary_data) = match &object.content {
            Content::ConfigMap(map) => (None, encoded(&map.data), encoded(&map.binary_data)),
            Content::Secret(secret) => (
                Some(secret.kind.clone()),
                encoded(&secret.data),
                Encoded::new(),
            ),
        };
        Self {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: object.uid.clone(),
            secret_type,
            immutable: object.immutable,
            data,
            binary_data,
        }
    }

    /// The object, if it is this one.
    pub(super) fn object(self, key: &ObjectKey) -> Option<Object> {
        if (&self.namespace, &self.name) != (&key.namespace, &key.name) {
            return None;
        }
        let content = match (key.kind, self.secret_type) {
            (ObjectKind::ConfigMap, None) => Content::ConfigMap(Arc::new(ConfigMap {
                data: decoded(self.data)?,
                binary_data: decoded(self.binary_data)?,
            })),
            (ObjectKind::Secret, Some(kind)) => Content::Secret(Arc::new(Secret {
                kind,
                data: decoded(self.data)?,
            })),
            _ => return None,
        };
        Some(Object {
            uid: self.uid,
            content,
            immutable: self.immutable,
        })
    }
}

fn encoded(data: &ObjectData) -> Encoded {
    let entries = data.iter();
    entries
        .map(|(key, bytes)| (key.clone(), STANDARD.encode(bytes)))
        .collect()
}

fn decoded(data: Encoded) -> Option<ObjectData> {
    let entries = data.into_iter();
    entries
        .map(|(key, text)| Some((key, STANDARD.decode(text).ok()?.into())))
        .collect()
}
