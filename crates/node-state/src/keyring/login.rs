//! One login for a registry, and whose it is.

use aws_lc_rs::digest::{SHA256, digest};
use rubelet_cri::v1::AuthConfig;
use rubelet_pod_plan::image_access::{PullCredentials, PullSecret, PullServiceAccount};

/// A login for a registry.
#[derive(Clone, PartialEq, Default)]
pub struct PullLogin {
    /// What the runtime shows to the registry.
    pub auth: AuthConfig,
    /// Whose it is.
    pub source: LoginSource,
}

/// Whose login it is: who else may use what is pulled with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LoginSource {
    /// The node's: all of its pods.
    #[default]
    Node,
    /// A pull secret's: pods that have it.
    Secret(PullSecret),
    /// What a plugin gives for a token of a service account: pods of the service account.
    ServiceAccount(PullServiceAccount),
}

impl PullLogin {
    /// A login of the node.
    #[must_use]
    pub fn of_node(auth: AuthConfig) -> Self {
        Self {
            auth,
            source: LoginSource::Node,
        }
    }

    /// A login of the secret with this UID, namespace and name.
    #[must_use]
    pub fn of_secret(auth: AuthConfig, uid: &str, namespace: &str, name: &str) -> Self {
        let secret = PullSecret {
            uid: uid.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            credential_hash: hash(&auth),
        };
        Self {
            auth,
            source: LoginSource::Secret(secret),
        }
    }
}

impl LoginSource {
    /// What is recorded of an image that was pulled with such a login.
    #[must_use]
    pub fn credentials(&self) -> PullCredentials {
        let mut credentials = PullCredentials::default();
        match self {
            Self::Node => credentials.node_pods_accessible = true,
            Self::Secret(secret) => credentials.kubernetes_secrets.push(secret.clone()),
            Self::ServiceAccount(account) => {
                credentials
                    .kubernetes_service_accounts
                    .push(account.clone());
            }
        }
        credentials
    }
}

/// SHA-256 of the login as upstream writes it: JSON in the form of Go, which escapes what HTML
/// gives a meaning.
fn hash(auth: &AuthConfig) -> String {
    let text = |text: &str| {
        let json = serde_json::Value::from(text).to_string();
        json.replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029")
    };
    let fields = [("username", &auth.username), ("password", &auth.password)];
    let written: Vec<String> = fields
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| format!("\"{key}\":{}", text(value)))
        .collect();
    let json = format!("{{{}}}", written.join(","));
    let hash = digest(&SHA256, json.as_bytes());
    let bytes = hash.as_ref().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}
