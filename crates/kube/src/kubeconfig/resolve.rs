//! One context of a kubeconfig, resolved.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rubelet_base::ErrorChain;
use serde_json::{Map, Value, json};

use super::{
    Kubeconfig, KubeconfigError,
    document::{Cluster, Exec, User},
    given,
};
use crate::{
    config::{ClientConfig, Credential, ExecPlugin, ExecVersion, IdentitySource, Proxy, Roots},
    identity::ClientIdentity,
    secret::Secret,
    server_url::ServerUrl,
};

type Result<T> = std::result::Result<T, KubeconfigError>;

/// The extension of a cluster that is passed to plugins.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";

pub(super) fn client_config(file: &Kubeconfig, context: Option<&str>) -> Result<ClientConfig> {
    let (cluster_field, cluster) = cluster(file, context)?;
    let (user_field, user) = user(file, context)?;
    let cluster = ClusterFields {
        file,
        at: cluster_field,
        cluster,
    };
    let user = UserFields {
        file,
        at: user_field,
        user,
    };
    let roots = cluster.roots()?;
    let identity = user.identity()?;
    Ok(ClientConfig {
        server: cluster.server(&roots, &identity)?,
        insecure_skip_tls_verify: cluster.cluster.insecure_skip_tls_verify,
        tls_server_name: given(cluster.cluster.tls_server_name.as_ref())
            .map(|name| name.as_str().into()),
        proxy: cluster.proxy()?,
        credential: user.credential(&cluster, &roots, &identity)?,
        roots,
        identity,
        connector: None,
    })
}

/// The cluster of a context, and the field where it stands.
pub(super) fn cluster<'a>(
    file: &'a Kubeconfig,
    context: Option<&str>,
) -> Result<(String, &'a Cluster)> {
    let (at, context) = self::context(file, context)?;
    let clusters = file.file.clusters.as_deref().unwrap_or_default();
    let names = clusters.iter().map(|named| named.name.as_str());
    let index = find(
        file,
        "clusters",
        &names,
        &context.cluster,
        &format!("{at}.cluster"),
    )?;
    Ok((
        format!("clusters[{index}].cluster"),
        &clusters[index].cluster,
    ))
}

fn user<'a>(file: &'a Kubeconfig, context: Option<&str>) -> Result<(String, &'a User)> {
    let (at, context) = self::context(file, context)?;
    let users = file.file.users.as_deref().unwrap_or_default();
    let names = users.iter().map(|named| named.name.as_str());
    let index = find(file, "users", &names, &context.user, &format!("{at}.user"))?;
    Ok((format!("users[{index}].user"), &users[index].user))
}

fn context<'a>(
    file: &'a Kubeconfig,
    name: Option<&str>,
) -> Result<(String, &'a super::document::Context)> {
    let current = given(file.file.current_context.as_ref()).map(String::as_str);
    let name = name.or(current).unwrap_or_default();
    let contexts = file.file.contexts.as_deref().unwrap_or_default();
    let names = contexts.iter().map(|named| named.name.as_str());
    let index = find(file, "contexts", &names, name, "current-context")?;
    Ok((
        format!("contexts[{index}].context"),
        &contexts[index].context,
    ))
}

/// The place of `name` in the list `list`. `field` is where the name stands.
fn find<'a>(
    file: &Kubeconfig,
    list: &str,
    names: &(impl Iterator<Item = &'a str> + Clone),
    name: &str,
    field: &str,
) -> Result<usize> {
    let all = || {
        let names: Vec<String> = names.clone().map(|name| format!("{name:?}")).collect();
        match names.is_empty() {
            true => format!("the list {list} is empty"),
            false => format!("the list {list} has {}", names.join(", ")),
        }
    };
    if name.is_empty() {
        return Err(file.bad(field, format!("not set; {}", all())));
    }
    let mut places = names
        .clone()
        .enumerate()
        .filter(|(_, other)| *other == name);
    let Some((index, _)) = places.next() else {
        return Err(file.bad(field, format!("there is no {name:?}; {}", all())));
    };
    match places.next() {
        None => Ok(index),
        Some((again, _)) => {
            let problem = format!("{name:?} is the name of {list}[{index}] already");
            Err(file.bad(format!("{list}[{again}].name"), problem))
        }
    }
}

struct ClusterFields<'a> {
    file: &'a Kubeconfig,
    at: String,
    cluster: &'a Cluster,
}

impl ClusterFields<'_> {
    fn bad(&self, field: &str, problem: impl Display) -> KubeconfigError {
        self.file
            .bad(format!("{}.{field}", self.at), problem.to_string())
    }

    fn server(&self, roots: &Roots, identity: &IdentitySource) -> Result<ServerUrl> {
        if self.cluster.server.is_empty() {
            return Err(self.bad("server", "not set; write https://host:port"));
        }
        let secure = self.cluster.insecure_skip_tls_verify
            || *roots != Roots::System
            || !matches!(identity, IdentitySource::None);
        ServerUrl::parse(&self.cluster.server, secure).map_err(|error| self.bad("server", error))
    }

    fn roots(&self) -> Result<Roots> {
        let data = given(self.cluster.certificate_authority_data.as_ref());
        let path = given(self.cluster.certificate_authority.as_ref());
        let (field, roots) = match (data, path) {
            (Some(data), _) => {
                let field = "certificate-authority-data";
                let pem = decode(data).map_err(|problem| self.bad(field, problem))?;
                (field, Roots::Pem(pem.into()))
            }
            (None, Some(path)) => {
                let field = "certificate-authority";
                let path = self.file.relative(path);
                read(&path).map_err(|problem| self.bad(field, problem))?;
                (field, Roots::File(path))
            }
            (None, None) => return Ok(Roots::System),
        };
        if self.cluster.insecure_skip_tls_verify {
            return Err(self.bad(
                field,
                "contradicts insecure-skip-tls-verify, which trusts any server; remove one",
            ));
        }
        Ok(roots)
    }

    fn proxy(&self) -> Result<Proxy> {
        match given(self.cluster.proxy_url.as_ref()) {
            None => Ok(Proxy::Environment),
            Some(url) => {
                crate::transport::check_proxy(url).map_err(|error| self.bad("proxy-url", error))?;
                Ok(Proxy::Http(url.as_str().into()))
            }
        }
    }

    /// The description of the cluster for a plugin with `provideClusterInfo`.
    fn information(&self, roots: &Roots) -> Value {
        let mut told = Map::new();
        told.insert("server".to_owned(), json!(self.cluster.server));
        let authorities = match roots {
            Roots::System => None,
            Roots::Pem(pem) => Some(STANDARD.encode(pem)),
            Roots::File(path) => read(path).ok().map(|pem| STANDARD.encode(pem)),
        };
        for (name, value) in [
            ("tls-server-name", self.cluster.tls_server_name.as_ref()),
            ("certificate-authority-data", authorities.as_ref()),
            ("proxy-url", self.cluster.proxy_url.as_ref()),
        ] {
            if let Some(value) = given(value) {
                told.insert(name.to_owned(), json!(value));
            }
        }
        if self.cluster.insecure_skip_tls_verify {
            told.insert("insecure-skip-tls-verify".to_owned(), json!(true));
        }
        let mut extensions = self.cluster.extensions.iter().flatten();
        if let Some(found) = extensions.find(|extension| extension.name == EXEC_EXTENSION) {
            told.insert("config".to_owned(), found.extension.clone());
        }
        Value::Object(told)
    }
}

struct UserFields<'a> {
    file: &'a Kubeconfig,
    at: String,
    user: &'a User,
}

impl UserFields<'_> {
    fn bad(&self, field: &str, problem: impl Display) -> KubeconfigError {
        self.file
            .bad(format!("{}.{field}", self.at), problem.to_string())
    }

    fn identity(&self) -> Result<IdentitySource> {
        let user = self.user;
        let certificate_data = given(user.client_certificate_data.as_ref());
        let key_data = user
            .client_key_data
            .as_ref()
            .filter(|data| !data.expose().is_empty());
        let certificate_path = given(user.client_certificate.as_ref());
        let key_path = given(user.client_key.as_ref());
        if certificate_data.is_none() && certificate_path.is_none() {
            return match (key_data, key_path) {
                (None, None) => Ok(IdentitySource::None),
                (Some(_), _) => Err(self.bad("client-key-data", "there is no certificate to it")),
                (None, Some(_)) => Err(self.bad("client-key", "there is no certificate to it")),
            };
        }
        let certificate_path = certificate_path.map(|path| self.file.relative(path));
        let key_path = key_path.map(|path| self.file.relative(path));
        let (certificate_field, certificate) = match (certificate_data, &certificate_path) {
            (Some(data), _) => ("client-certificate-data", decode(data)),
            (None, path) => (
                "client-certificate",
                read(path.as_deref().unwrap_or(Path::new(""))),
            ),
        };
        let certificate = certificate.map_err(|problem| self.bad(certificate_field, problem))?;
        let (key_field, key) = match (key_data, &key_path) {
            (Some(data), _) => ("client-key-data", decode(data.expose())),
            (None, Some(path)) => ("client-key", read(path)),
            (None, None) => {
                return Err(self.bad(certificate_field, "there is no client-key to it"));
            }
        };
        let key = key.map_err(|problem| self.bad(key_field, problem))?;
        let identity = ClientIdentity::from_pem(&certificate, &key)
            .map_err(|error| self.bad(certificate_field, ErrorChain(&error)))?;
        Ok(
            match (certificate_data, certificate_path, key_data, key_path) {
                (None, Some(certificate), None, Some(key)) => {
                    IdentitySource::Files { certificate, key }
                }
                _ => IdentitySource::Shared(identity),
            },
        )
    }

    fn credential(
        &self,
        cluster: &ClusterFields<'_>,
        roots: &Roots,
        identity: &IdentitySource,
    ) -> Result<Credential> {
        self.refuse()?;
        let user = self.user;
        let token = user
            .token
            .clone()
            .filter(|token| !token.expose().is_empty());
        let name = given(user.username.as_ref());
        if token.is_some() && name.is_some() {
            return Err(self.bad("token", "contradicts username; remove one"));
        }
        if let Some(path) = given(user.token_file.as_ref()) {
            let path = self.file.relative(path);
            if let (Err(problem), None) = (read(&path), &token) {
                return Err(self.bad("tokenFile", problem));
            }
            let otherwise = token;
            return Ok(Credential::TokenFile { path, otherwise });
        }
        if let Some(token) = token {
            return Ok(Credential::Token(token));
        }
        if let Some(name) = name {
            return Ok(Credential::Basic {
                user: name.as_str().into(),
                password: user.password.clone().unwrap_or_else(|| Secret::new("")),
            });
        }
        match &user.exec {
            // A certificate of its own wins, as upstream.
            Some(exec) if matches!(identity, IdentitySource::None) => {
                let told = exec
                    .provide_cluster_info
                    .then(|| cluster.information(roots));
                self.plugin(exec, told)
                    .map(|plugin| Credential::Exec(Box::new(plugin)))
            }
            _ => Ok(Credential::None),
        }
    }

    /// Rejects fields that are accepted upstream and not supported here.
    fn refuse(&self) -> Result<()> {
        let user = self.user;
        let impersonation = [
            ("as", given(user.impersonate.as_ref()).is_some()),
            ("as-uid", given(user.as_uid.as_ref()).is_some()),
            (
                "as-groups",
                user.as_groups
                    .as_ref()
                    .is_some_and(|groups| !groups.is_empty()),
            ),
            (
                "as-user-extra",
                user.as_user_extra
                    .as_ref()
                    .is_some_and(|extra| !extra.is_empty()),
            ),
        ];
        if let Some((field, _)) = impersonation.iter().find(|(_, set)| *set) {
            let problem = "impersonation is not supported; give the node credentials of its own";
            return Err(self.bad(field, problem));
        }
        if user.auth_provider.is_some() {
            let problem = "not supported since Kubernetes 1.26; use exec with a credential plugin";
            return Err(self.bad("auth-provider", problem));
        }
        Ok(())
    }

    fn plugin(&self, exec: &Exec, cluster: Option<Value>) -> Result<ExecPlugin> {
        let version = [ExecVersion::V1, ExecVersion::V1beta1]
            .into_iter()
            .find(|version| version.api_version() == exec.api_version)
            .ok_or_else(|| {
                let (v1, beta) = (ExecVersion::V1, ExecVersion::V1beta1);
                let (v1, beta) = (v1.api_version(), beta.api_version());
                let problem = format!("{:?} is neither {v1} nor {beta}", exec.api_version);
                self.bad("exec.apiVersion", problem)
            })?;
        if exec.command.is_empty() {
            return Err(self.bad("exec.command", "not set"));
        }
        match (
            given(exec.interactive_mode.as_ref()).map(String::as_str),
            version,
        ) {
            (Some("Never" | "IfAvailable"), _) | (None, ExecVersion::V1beta1) => {}
            (None, ExecVersion::V1) => {
                return Err(self.bad("exec.interactiveMode", "not set; write Never"));
            }
            (Some("Always"), _) => {
                let problem = "a node has no terminal; use a plugin that needs none";
                return Err(self.bad("exec.interactiveMode", problem));
            }
            (Some(other), _) => {
                let problem = format!("{other:?} is not one of Never, IfAvailable and Always");
                return Err(self.bad("exec.interactiveMode", problem));
            }
        }
        let command = if exec.command.contains('/') {
            self.file.relative(&exec.command)
        } else {
            PathBuf::from(&exec.command)
        };
        let args = exec.args.iter().flatten();
        let env = exec.env.iter().flatten();
        Ok(ExecPlugin {
            version,
            command,
            args: args.map(|arg| arg.expose().to_owned()).collect(),
            env: env
                .map(|var| (var.name.clone(), var.value.expose().to_owned()))
                .collect(),
            install_hint: given(exec.install_hint.as_ref()).cloned(),
            cluster,
        })
    }
}

fn decode(text: &str) -> std::result::Result<Vec<u8>, String> {
    let text: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(text).map_err(|_| "not base64".to_owned())
}

fn read(path: &Path) -> std::result::Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
