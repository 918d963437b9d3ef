//! Kubeconfig files.

use serde_json::{Value, json};

use crate::{authority::Identity, base64};

/// Credentials of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// None.
    None,
    /// A bearer token.
    Token(String),
    /// A client certificate.
    Certificate(Identity),
}

impl Credentials {
    /// The text of a kubeconfig with these credentials, for the server at `url` whose certificate is
    /// signed by `ca_pem`.
    #[must_use]
    pub fn kubeconfig(&self, url: &str, ca_pem: Option<&str>) -> String {
        text(url, ca_pem, self)
    }
}

/// The text of a kubeconfig with one cluster and one user. JSON, which is also YAML.
fn text(url: &str, ca_pem: Option<&str>, credentials: &Credentials) -> String {
    let mut cluster = json!({ "server": url });
    if let Some(pem) = ca_pem {
        cluster["certificate-authority-data"] = base64::encode(pem.as_bytes()).into();
    }
    let user = match credentials {
        Credentials::None => json!({}),
        Credentials::Token(token) => json!({ "token": token }),
        Credentials::Certificate(identity) => json!({
            "client-certificate-data": base64::encode(identity.certificate_pem.as_bytes()),
            "client-key-data": base64::encode(identity.key_pem.as_bytes()),
        }),
    };
    let named = |key: &str, value: Value| json!([{ "name": "sim", key: value }]);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": named("cluster", cluster),
        "users": named("user", user),
        "contexts": named("context", json!({ "cluster": "sim", "user": "sim" })),
        "current-context": "sim",
    });
    format!("{config:#}\n")
}
