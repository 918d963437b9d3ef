//! The kubeconfig file: read, resolved for one context, written for a node that was bootstrapped.
//!
//! Rules of `k8s.io/client-go/tools/clientcmd` for one file. Relative paths are relative to the
//! file. What Rubelet does not do is refused with the name of the field: impersonation,
//! authentication providers, SOCKS proxies.

mod document;
mod resolve;

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use self::document::File;
use crate::config::ClientConfig;

/// Why a kubeconfig can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file can't be read.
    #[error("cannot read kubeconfig {}", path.display())]
    Read {
        /// The kubeconfig.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The text is no kubeconfig.
    #[error("kubeconfig {}: {problem}", path.display())]
    Syntax {
        /// The kubeconfig.
        path: PathBuf,
        /// Place, field and what is wrong.
        problem: String,
    },
    /// A field can't be used.
    #[error("kubeconfig {}: {field}: {problem}", path.display())]
    Field {
        /// The kubeconfig.
        path: PathBuf,
        /// Such as `users[0].user.token`.
        field: String,
        /// The error, and advice.
        problem: String,
    },
}

/// A kubeconfig file.
#[derive(Debug, Clone)]
pub struct Kubeconfig {
    path: PathBuf,
    file: File,
    warnings: Vec<String>,
}

impl Kubeconfig {
    /// Reads a file. Files that it names are read by [`Kubeconfig::client_config`].
    ///
    /// # Errors
    /// The file can't be read, or it is no kubeconfig.
    pub fn load(path: &Path) -> Result<Self, KubeconfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| KubeconfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        // What is relative to the file stays right when it is written down elsewhere.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self::parse(&text, &path)
    }

    /// Reads the text of the file at `path`.
    ///
    /// # Errors
    /// It is no kubeconfig.
    pub fn parse(text: &str, path: &Path) -> Result<Self, KubeconfigError> {
        // Only place, field and message: a snippet of the text could hold a secret.
        let syntax = |problem: String| KubeconfigError::Syntax {
            path: path.to_owned(),
            problem,
        };
        let documents = rubelet_yaml::documents(text).map_err(|error| syntax(error.to_string()))?;
        let document = match documents.as_slice() {
            [] => return Err(syntax("the file is empty".to_owned())),
            [document] => document,
            [_, ..] => return Err(syntax("the file holds more than one document".to_owned())),
        };
        let decoded = document
            .decode::<File>()
            .map_err(|error| syntax(error.to_string()))?;
        let file = decoded.value;
        if !matches!(file.api_version.as_str(), "" | "v1")
            || !matches!(file.kind.as_str(), "" | "Config")
        {
            let (version, kind) = (&file.api_version, &file.kind);
            return Err(syntax(format!(
                "expected v1 Config and found {version:?} {kind:?}"
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            warnings: decoded.unknown.iter().map(ToString::to_string).collect(),
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fields that no kubeconfig has, with their places: misspelt ones, mostly.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The configuration of `context`, or of the file's current context. Reads the files that it
    /// names, so that mistakes show at once.
    ///
    /// # Errors
    /// Something is missing, contradicts itself or is not supported.
    pub fn client_config(&self, context: Option<&str>) -> Result<ClientConfig, KubeconfigError> {
        resolve::client_config(self, context)
    }

    /// The text of a kubeconfig for the same server with this client certificate and no other
    /// credentials: what the kubelet writes after its bootstrap.
    ///
    /// # Errors
    /// The context can't be found.
    pub fn with_client_certificate(
        &self,
        context: Option<&str>,
        certificate: &Path,
        key: &Path,
    ) -> Result<String, KubeconfigError> {
        let (_, cluster) = resolve::cluster(self, context)?;
        let mut written = Map::new();
        written.insert("server".to_owned(), json!(cluster.server));
        if let Some(file) = given(cluster.certificate_authority.as_ref())
            && given(cluster.certificate_authority_data.as_ref()).is_none()
        {
            let file = self.relative(file).display().to_string();
            written.insert("certificate-authority".to_owned(), json!(file));
        }
        for (name, value) in [
            (
                "certificate-authority-data",
                &cluster.certificate_authority_data,
            ),
            ("tls-server-name", &cluster.tls_server_name),
            ("proxy-url", &cluster.proxy_url),
        ] {
            if let Some(value) = given(value.as_ref()) {
                written.insert(name.to_owned(), json!(value));
            }
        }
        if cluster.insecure_skip_tls_verify {
            written.insert("insecure-skip-tls-verify".to_owned(), json!(true));
        }
        let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
        let user = json!({ "client-certificate": certificate, "client-key": key });
        let context = json!({
            "cluster": "default-cluster",
            "namespace": "default",
            "user": "default-auth",
        });
        Ok(rubelet_yaml::to_yaml(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "default-cluster", "cluster": Value::Object(written) }],
            "users": [{ "name": "default-auth", "user": user }],
            "contexts": [{ "name": "default-context", "context": context }],
            "current-context": "default-context",
        })))
    }

    /// A path as the file means it.
    fn relative(&self, path: &str) -> PathBuf {
        match self.path.parent() {
            Some(directory) => directory.join(path),
            None => PathBuf::from(path),
        }
    }

    fn bad(&self, field: impl Into<String>, problem: impl Into<String>) -> KubeconfigError {
        KubeconfigError::Field {
            path: self.path.clone(),
            field: field.into(),
            problem: problem.into(),
        }
    }
}

/// An empty text is as good as none.
fn given(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
