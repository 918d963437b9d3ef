//! A registry login and its source.

use aws_lc_rs::digest::{SHA256, digest};
use rubelet_cri::v1::AuthConfig;
use rubelet_pod_plan::image_access::{PullCredentials, PullSecret, PullServiceAccount};

/// A login for a registry.
#[derive(Clone, PartialEq, Default)]
pub struct PullLogin {
    /// The credentials for the registry.
    pub auth: AuthConfig,
    /// Its source.
    pub source: LoginSource,
}

/// The source of a login, which determines the pods that may use images pulled with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LoginSource {
    /// The node: all its pods.
    #[default]
    Node,
    /// A pull secret: pods that reference it.
    Secret(PullSecret),
    /// A plugin with a token of a service account: pods of that service account.
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
    /// The credentials to record for an image that was pulled with this login.
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

/// SHA-256 of the login as upstream computes it, over Go's JSON, which escapes HTML characters.
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
    hex::encode(digest(&SHA256, json.as_bytes()))
}
