//! The kubeconfig file format.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::secret::Secret;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct File {
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default, rename = "apiVersion")]
    pub(super) api_version: String,
    #[serde(default, rename = "preferences")]
    _preferences: Option<Value>,
    #[serde(default)]
    pub(super) clusters: Option<Vec<NamedCluster>>,
    #[serde(default)]
    pub(super) users: Option<Vec<NamedUser>>,
    #[serde(default)]
    pub(super) contexts: Option<Vec<NamedContext>>,
    #[serde(default)]
    pub(super) current_context: Option<String>,
    #[serde(default, rename = "extensions")]
    _extensions: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct NamedCluster {
    pub(super) name: String,
    pub(super) cluster: Cluster,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Cluster {
    #[serde(default)]
    pub(super) server: String,
    pub(super) tls_server_name: Option<String>,
    #[serde(default)]
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) certificate_authority: Option<String>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) proxy_url: Option<String>,
    /// Answers are never compressed for us: nothing to switch off.
    #[serde(default, rename = "disable-compression")]
    _disable_compression: Option<bool>,
    pub(super) extensions: Option<Vec<NamedExtension>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct NamedExtension {
    pub(super) name: String,
    pub(super) extension: Value,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct NamedUser {
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) user: User,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct User {
    pub(super) client_certificate: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key: Option<String>,
    pub(super) client_key_data: Option<Secret>,
    pub(super) token: Option<Secret>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<String>,
    #[serde(rename = "as")]
    pub(super) impersonate: Option<String>,
    pub(super) as_uid: Option<String>,
    pub(super) as_groups: Option<Vec<String>>,
    pub(super) as_user_extra: Option<BTreeMap<String, Vec<String>>>,
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) auth_provider: Option<IgnoredValue>,
    pub(super) exec: Option<Exec>,
    #[serde(default, rename = "extensions")]
    _extensions: Option<Value>,
}

/// Writers leave `user:` empty where there are no credentials.
fn or_default<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<User, D::Error> {
    Option::<User>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A field that may hold secrets and is not used.
#[derive(Clone)]
pub(super) struct IgnoredValue;

impl<'de> Deserialize<'de> for IgnoredValue {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|_| Self)
    }
}

impl std::fmt::Debug for IgnoredValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exec {
    #[serde(default)]
    pub(super) api_version: String,
    #[serde(default)]
    pub(super) command: String,
    pub(super) args: Option<Vec<Secret>>,
    pub(super) env: Option<Vec<EnvVar>>,
    pub(super) install_hint: Option<String>,
    #[serde(default)]
    pub(super) provide_cluster_info: bool,
    pub(super) interactive_mode: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct EnvVar {
    pub(super) name: String,
    pub(super) value: Secret,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct NamedContext {
    pub(super) name: String,
    pub(super) context: Context,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Context {
    #[serde(default)]
    pub(super) cluster: String,
    #[serde(default)]
    pub(super) user: String,
    #[serde(default, rename = "namespace")]
    _namespace: Option<String>,
    #[serde(default, rename = "extensions")]
    _extensions: Option<Value>,
}
