//! Requests of an administrator to a real API server: one connection for each, with a client
//! certificate. Independent of the agent's own client, which is being tested.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use sim_api::{Identity, Kind};

use crate::http::{Response, request};
use crate::wait;

/// Timeout of a silent server.
const SILENCE: Duration = Duration::from_secs(60);
/// Poll interval of an object: each poll costs a connection.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The namespace of the users of [`Client::token_of`].
const NAMESPACE: &str = "default";

/// A client of one server.
pub(super) struct Client {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

impl Client {
    /// A client of the server at `address`, whose certificate is signed by `ca_pem`.
    pub(super) fn new(address: SocketAddr, ca_pem: &str, identity: &Identity) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes())?)?;
        let certificate = CertificateDer::from_pem_slice(identity.certificate_pem.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)?;
        Ok(Self {
            address,
            tls: Arc::new(tls),
        })
    }

    /// Sends one request; returns any response.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        content: Option<(&str, &Value)>,
    ) -> Result<Response> {
        let stream = TcpStream::connect(self.address)
            .with_context(|| format!("cannot connect to {}", self.address))?;
        stream.set_read_timeout(Some(SILENCE))?;
        // Else the request waits until the server has acknowledged the end of the handshake, 40 ms later.
        stream.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        let connection = ClientConnection::new(Arc::clone(&self.tls), name)?;
        let stream = StreamOwned::new(connection, stream);
        let content = content.map(|(kind, body)| (kind, body.to_string()));
        let content = content.as_ref().map(|(kind, body)| (*kind, body.as_str()));
        request(stream, &self.address.to_string(), method, path, content)
    }

    /// Sends one request that must succeed; returns its response.
    fn done(&self, method: &str, path: &str, content: Option<(&str, &Value)>) -> Result<Value> {
        let answer = self.ask(method, path, content)?;
        if !(200..300).contains(&answer.status) {
            let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let message = said["message"].as_str().map(str::to_owned);
            bail!(
                "{method} {path} gave status {}: {}",
                answer.status,
                message.unwrap_or_else(|| answer.text())
            );
        }
        serde_json::from_slice(&answer.body)
            .with_context(|| format!("{method} {path} returned no JSON: {}", answer.text()))
    }

    /// Creates an object at this path.
    pub(super) fn post(&self, path: &str, object: &Value) -> Result<Value> {
        self.done("POST", path, Some(("application/json", object)))
    }

    pub(super) fn create(&self, resource: &str, object: &Value) -> Result<Value> {
        let kind = kind(resource)?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        self.post(&kind.path(Some(home(namespace))), object)
    }

    pub(super) fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        let path = path((resource, namespace, name))?;
        let answer = self.ask("GET", &path, None)?;
        match answer.status {
            200 => Ok(Some(serde_json::from_slice(&answer.body)?)),
            404 => Ok(None),
            status => bail!("GET {path} returned status {status}: {}", answer.text()),
        }
    }

    pub(super) fn patch(&self, object: (&str, &str, &str), patch: &Value) -> Result<Value> {
        let media_type = "application/strategic-merge-patch+json";
        self.done("PATCH", &path(object)?, Some((media_type, patch)))
    }

    pub(super) fn delete(&self, object: (&str, &str, &str), grace: Option<u32>) -> Result<()> {
        let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
        if let Some(seconds) = grace {
            options["gracePeriodSeconds"] = seconds.into();
        }
        let content = Some(("application/json", &options));
        self.done("DELETE", &path(object)?, content).map(drop)
    }

    pub(super) fn wait_for(
        &self,
        object: (&str, &str, &str),
        limit: Duration,
        wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Value>> {
        let (resource, namespace, name) = object;
        let mut last = "never seen".to_owned();
        let what = format!("{resource} {namespace}/{name} meets the condition");
        let waited = wait::until_every(POLL_INTERVAL, &what, limit, || {
            let found = match self.get(resource, namespace, name) {
                Ok(found) => found,
                // It may be restarting.
                Err(error) => {
                    last = format!("{error:#}");
                    return Ok(None);
                }
            };
            if wanted(found.as_ref()) {
                return Ok(Some(found));
            }
            last = found.map_or_else(|| "absent".to_owned(), |object| object.to_string());
            Ok(None)
        });
        waited.map_err(|error| anyhow!("{error}; the last state was {last}"))
    }

    /// A token of a service account, which is created for it.
    pub(super) fn token_of(&self, user: &str) -> Result<String> {
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": user, "namespace": NAMESPACE },
        });
        self.create("serviceaccounts", &account)?;
        let path = path(("serviceaccounts", NAMESPACE, user))?;
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {},
        });
        let answer = self.post(&format!("{path}/token"), &request)?;
        let token = answer["status"]["token"].as_str();
        token
            .map(str::to_owned)
            .context("the server returned no token")
    }

    /// A role with this one right, bound to the service account of this name.
    pub(super) fn allow(&self, user: &str, verb: &str, resource: &str) -> Result<()> {
        let name = format!("{user}-{verb}-{}", resource.replace('/', "-"));
        let metadata = json!({ "name": name });
        let group = "rbac.authorization.k8s.io";
        let rules = json!([{ "apiGroups": [""], "resources": [resource], "verbs": [verb] }]);
        let role = json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": rules,
        });
        let subject = match user.starts_with("system:") {
            true => json!({ "apiGroup": group, "kind": "User", "name": user }),
            false => json!({ "kind": "ServiceAccount", "name": user, "namespace": NAMESPACE }),
        };
        let binding = json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": name },
            "subjects": [subject],
        });
        self.post(&format!("/apis/{group}/v1/clusterroles"), &role)?;
        self.post(&format!("/apis/{group}/v1/clusterrolebindings"), &binding)?;
        Ok(())
    }
}

fn kind(resource: &str) -> Result<&'static Kind> {
    Kind::of(resource).with_context(|| format!("unknown resource {resource}"))
}

fn home(namespace: &str) -> &str {
    if namespace.is_empty() {
        "default"
    } else {
        namespace
    }
}

/// The path of an object, or of a subresource: `pods/status`.
fn path((resource, namespace, name): (&str, &str, &str)) -> Result<String> {
    let (plural, part) = match resource.split_once('/') {
        Some((plural, part)) => (plural, format!("/{part}")),
        None => (resource, String::new()),
    };
    let collection = kind(plural)?.path(Some(home(namespace)));
    Ok(format!("{collection}/{name}{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_subresources_have_paths() {
        for (object, wanted) in [
            (("pods", "a", "b"), "/api/v1/namespaces/a/pods/b"),
            (
                ("pods/status", "", "b"),
                "/api/v1/namespaces/default/pods/b/status",
            ),
            (("nodes", "", "n"), "/api/v1/nodes/n"),
        ] {
            assert_eq!(path(object).unwrap(), wanted);
        }
        assert!(path(("deployments", "a", "b")).is_err());
    }
}
