//! The API server of a single-node cluster: the model, or real programs that the environment names.

mod audit;
mod client;
mod control_plane;
mod files;
mod model;
pub mod programs;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sim_api::{Credentials, Identity, SimApi, User};

use crate::clock;
use control_plane::ControlPlane;
use model::Model;
use programs::Programs;

/// The environment variable that names the directory of the programs; without it the model is used.
pub const VARIABLE: &str = "RUBELET_TEST_API_SERVER";
/// The bootstrap token of a node without a certificate.
const BOOTSTRAP_TOKEN: &str = "abcdef.0123456789abcdef";
/// The group of such a node.
const BOOTSTRAP_GROUP: &str = "system:bootstrappers";
/// Lifetime of certificates.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// An API server. It stops when the value is dropped.
pub enum ApiServer {
    /// The model, in this process.
    Model(Model),
    /// A control plane of real programs.
    Real(Box<ControlPlane>),
}

impl ApiServer {
    /// Starts the one that [`VARIABLE`] selects.
    ///
    /// # Errors
    /// A program is missing, does not start, or no port is free.
    pub fn start() -> Result<Self> {
        match real_programs()? {
            Some(programs) => Ok(Self::Real(Box::new(ControlPlane::start(&programs)?))),
            None => Self::start_model(),
        }
    }

    /// Starts the model, whatever the environment selects.
    ///
    /// # Errors
    /// No port is free.
    pub fn start_model() -> Result<Self> {
        Ok(Self::Model(Model::start()?))
    }

    /// The model, for its own features.
    ///
    /// # Errors
    /// It is a real one.
    pub fn model(&self) -> Result<&SimApi> {
        match self {
            Self::Model(model) => Ok(&model.api),
            Self::Real(_) => bail!("only the model API server supports this"),
        }
    }

    /// The certificate of the cluster's authority, as PEM.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        match self {
            Self::Model(model) => model.api.ca_pem(),
            Self::Real(real) => real.authority.pem(),
        }
    }

    /// A client certificate of a user.
    ///
    /// # Errors
    /// It can't be created.
    pub fn client_certificate(&self, user: &User) -> Result<Identity> {
        Ok(match self {
            Self::Model(model) => model.api.client_certificate(user, LIFETIME)?,
            Self::Real(real) => real.authority.client(user, now()?, LIFETIME)?,
        })
    }

    /// A serving certificate for these names and addresses.
    ///
    /// # Errors
    /// It can't be created.
    pub fn server_certificate(&self, names: &[&str]) -> Result<Identity> {
        Ok(match self {
            Self::Model(model) => model.api.server_certificate(names, LIFETIME)?,
            Self::Real(real) => {
                let names = names.iter().map(|&name| name.to_owned()).collect();
                real.authority.server(names, now()?, LIFETIME)?
            }
        })
    }

    /// A kubeconfig for this server.
    #[must_use]
    pub fn kubeconfig(&self, credentials: &Credentials) -> String {
        match self {
            Self::Model(model) => model.api.kubeconfig(credentials),
            Self::Real(real) => credentials.kubeconfig(&real.url(), Some(&self.ca_pem())),
        }
    }

    /// The credentials of a node without a certificate.
    #[must_use]
    pub fn bootstrap_credentials(&self) -> Credentials {
        Credentials::Token(BOOTSTRAP_TOKEN.to_owned())
    }

    /// Creates an object as an administrator, in its `metadata.namespace`, or in `default`.
    /// `resource` is a plural, or `plural.group`.
    ///
    /// # Errors
    /// The server rejects it.
    pub fn create(&self, resource: &str, object: &Value) -> Result<Value> {
        match self {
            Self::Model(model) => Ok(model.api.create(resource, object)?),
            Self::Real(real) => real.client.create(resource, object),
        }
    }

    /// The object, if it exists.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        match self {
            Self::Model(model) => Ok(model.api.get(resource, namespace, name)),
            Self::Real(real) => real.client.get(resource, namespace, name),
        }
    }

    /// Changes an object by a strategic merge patch, as an administrator.
    ///
    /// # Errors
    /// The server rejects it.
    pub fn patch(
        &self,
        (resource, namespace, name): (&str, &str, &str),
        patch: &Value,
    ) -> Result<Value> {
        match self {
            Self::Model(model) => Ok(model.api.patch(resource, namespace, name, patch)?),
            Self::Real(real) => real.client.patch((resource, namespace, name), patch),
        }
    }

    /// Deletes an object, or begins its termination; `grace` in seconds.
    ///
    /// # Errors
    /// The server rejects it.
    pub fn delete(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        grace: Option<u32>,
    ) -> Result<()> {
        match self {
            Self::Model(model) => Ok(model.api.delete(resource, namespace, name, grace)?),
            Self::Real(real) => real.client.delete((resource, namespace, name), grace),
        }
    }

    /// Waits until an object satisfies `wanted`; `None` means that it does not exist.
    ///
    /// # Errors
    /// A timeout; reports the last state.
    pub fn wait_for(
        &self,
        object: (&str, &str, &str),
        limit: Duration,
        wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Value>> {
        match self {
            Self::Model(model) => model.wait_for(object, limit, wanted),
            Self::Real(real) => real.client.wait_for(object, limit, wanted),
        }
    }

    /// While down, all connections are closed and new ones are refused. Returns when that is the
    /// case.
    ///
    /// # Errors
    /// A real one can't be stopped, or does not start again.
    pub fn set_down(&self, down: bool) -> Result<()> {
        match self {
            Self::Model(model) => model.api.set_down(down),
            Self::Real(real) if down => real.kill_api_server()?,
            Self::Real(real) => real.start_api_server()?,
        }
        Ok(())
    }

    /// Restarts with the same objects; watches can't be resumed.
    ///
    /// # Errors
    /// As [`ApiServer::set_down`].
    pub fn restart(&self) -> Result<()> {
        match self {
            Self::Model(model) => model.restart(),
            Self::Real(_) => {
                self.set_down(true)?;
                self.set_down(false)?;
            }
        }
        Ok(())
    }

    /// A bearer token of a user without rights.
    ///
    /// # Errors
    /// The server refuses to create one.
    pub fn token_of(&self, user: &str) -> Result<String> {
        match self {
            Self::Model(model) => {
                let token = format!("of-{user}");
                model.api.add_token(&token, User::new(user, &[]));
                Ok(token)
            }
            Self::Real(real) => real.client.token_of(user),
        }
    }

    /// Grants a right to a user of [`ApiServer::token_of`], or to one whose name begins with
    /// `system:`; `resource` is a plural, optionally with a subresource.
    ///
    /// # Errors
    /// The server rejects it.
    pub fn allow(&self, user: &str, verb: &str, resource: &str) -> Result<()> {
        match self {
            Self::Model(model) => {
                let rule = sim_api::AccessRule::allow(user, verb, resource);
                model.api.add_access_rule(rule);
                Ok(())
            }
            Self::Real(real) => real.client.allow(user, verb, resource),
        }
    }

    /// Requests that a node must not send, a line for each: the model checks pods and their
    /// statuses, for a real server it is the rejected requests.
    ///
    /// # Errors
    /// The audit log of a real one can't be read.
    pub fn violations(&self) -> Result<Vec<String>> {
        match self {
            Self::Model(model) => {
                let seen = model.api.violations();
                Ok(seen.iter().map(ToString::to_string).collect())
            }
            Self::Real(real) => real.violations(),
        }
    }
}

/// The programs that [`VARIABLE`] names, if it names any.
///
/// # Errors
/// One of them is missing.
pub fn real_programs() -> Result<Option<Programs>> {
    match std::env::var_os(VARIABLE) {
        Some(dir) if !dir.is_empty() => Programs::find(&PathBuf::from(dir)).map(Some),
        _ => Ok(None),
    }
}

/// The kubectl of the API server: that of its directory, else the machine's.
///
/// # Errors
/// As [`real_programs`].
pub fn kubectl() -> Result<PathBuf> {
    let own = real_programs()?.and_then(|programs| programs.kubectl());
    Ok(own.unwrap_or_else(|| PathBuf::from("kubectl")))
}

fn now() -> Result<jiff::Timestamp> {
    jiff::Timestamp::try_from(clock::wall()).context("the machine's clock shows no time")
}
