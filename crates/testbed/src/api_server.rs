//! The API server of a cluster of one node: the model, or real programs that the environment names.

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
/// The token of a node that has no certificate yet.
const BOOTSTRAP_TOKEN: &str = "abcdef.0123456789abcdef";
/// The group that such a node is in.
const BOOTSTRAP_GROUP: &str = "system:bootstrappers";
/// How long certificates last.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// An API server. It stops when the value is dropped.
pub enum ApiServer {
    /// The model, in this process.
    Model(Model),
    /// A control plane of real programs.
    Real(Box<ControlPlane>),
}

impl ApiServer {
    /// Starts the one that [`VARIABLE`] asks for.
    ///
    /// # Errors
    /// A program is missing, does not start, or no port is free.
    pub fn start() -> Result<Self> {
        match real_programs()? {
            Some(programs) => Ok(Self::Real(Box::new(ControlPlane::start(&programs)?))),
            None => Self::start_model(),
        }
    }

    /// Starts the model, whatever the environment asks for.
    ///
    /// # Errors
    /// No port is free.
    pub fn start_model() -> Result<Self> {
        Ok(Self::Model(Model::start()?))
    }

    /// The model, for what only that can do.
    ///
    /// # Errors
    /// It is a real one.
    pub fn model(&self) -> Result<&SimApi> {
        match self {
            Self::Model(model) => Ok(&model.api),
            Self::Real(_) => bail!("this needs the model API server"),
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
    /// It can't be made.
    pub fn client_certificate(&self, user: &User) -> Result<Identity> {
        Ok(match self {
            Self::Model(model) => model.api.client_certificate(user, LIFETIME)?,
            Self::Real(real) => real.authority.client(user, now()?, LIFETIME)?,
        })
    }

    /// A certificate for a server with those names and addresses.
    ///
    /// # Errors
    /// It can't be made.
    pub fn server_certificate(&self, names: &[&str]) -> Result<Identity> {
        Ok(match self {
            Self::Model(model) => model.api.server_certificate(names, LIFETIME)?,
            Self::Real(real) => {
                let names = names.iter().map(|&name| name.to_owned()).collect();
                real.authority.server(names, now()?, LIFETIME)?
            }
        })
    }

    /// The text of a kubeconfig for this server.
    #[must_use]
    pub fn kubeconfig(&self, credentials: &Credentials) -> String {
        match self {
            Self::Model(model) => model.api.kubeconfig(credentials),
            Self::Real(real) => credentials.kubeconfig(&real.url(), Some(&self.ca_pem())),
        }
    }

    /// What a node without a certificate shows.
    #[must_use]
    pub fn bootstrap_credentials(&self) -> Credentials {
        Credentials::Token(BOOTSTRAP_TOKEN.to_owned())
    }

    /// Makes an object as an administrator; its `metadata.namespace` says where, `default` if there is
    /// none. `resource` is a plural, or `plural.group`.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn create(&self, resource: &str, object: &Value) -> Result<Value> {
        match self {
            Self::Model(model) => Ok(model.api.create(resource, object)?),
            Self::Real(real) => real.client.create(resource, object),
        }
    }

    /// The object, if it is there.
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
    /// The server refuses it.
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

    /// Deletes an object, or begins to; `grace` in seconds.
    ///
    /// # Errors
    /// The server refuses it.
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

    /// Waits until an object is as wanted; `None` stands for one that is not there.
    ///
    /// # Errors
    /// It was not so in time; tells the last state.
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

    /// While down, all connections are closed and none is taken. Returns when it is so.
    ///
    /// # Errors
    /// A real one can't be ended, or does not come back.
    pub fn set_down(&self, down: bool) -> Result<()> {
        match self {
            Self::Model(model) => model.api.set_down(down),
            Self::Real(real) if down => real.kill_api_server()?,
            Self::Real(real) => real.start_api_server()?,
        }
        Ok(())
    }

    /// Is gone for a moment and comes back with the same objects; watches can't go on where they were.
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

    /// A bearer token of a user who may do nothing yet.
    ///
    /// # Errors
    /// The server refuses to make one.
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

    /// Lets a user of [`ApiServer::token_of`] do something; `resource` is a plural, perhaps with a
    /// subresource.
    ///
    /// # Errors
    /// The server refuses it.
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

    /// What a node did that no node may, a line for each: of the model what it saw of pods and their
    /// statuses, of a real one the requests that it refused.
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

/// The kubectl that belongs to the API server: that of its directory, else the machine's.
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
