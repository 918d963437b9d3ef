//! The model API server, and its runtime.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use sim_api::{Restart, SimApi, SimApiConfig, User};
use tokio::runtime::Runtime;

use super::{BOOTSTRAP_GROUP, BOOTSTRAP_TOKEN};

/// Downtime of a restart.
const DOWN: Duration = Duration::from_secs(1);
/// How long after a restart the server does not know which pods are on which node.
const RELATIONS_AFTER: Duration = Duration::from_secs(1);

/// A model API server on a port of 127.0.0.1, with TLS and a scheduler.
pub struct Model {
    // Dropped before the runtime that it runs on.
    pub(super) api: SimApi,
    runtime: Runtime,
}

impl Model {
    pub(super) fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let config = SimApiConfig {
            tls: true,
            authenticate: true,
            service_account_volumes: true,
            node_authorization: true,
            relations_after: RELATIONS_AFTER,
            ..SimApiConfig::default()
        };
        let api = runtime.block_on(SimApi::start(config))?;
        api.add_token(
            BOOTSTRAP_TOKEN,
            User::new("system:bootstrap:abcdef", &[BOOTSTRAP_GROUP]),
        );
        Ok(Self { api, runtime })
    }

    pub(super) fn wait_for(
        &self,
        object: (&str, &str, &str),
        limit: Duration,
        wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Value>> {
        Ok(self
            .runtime
            .block_on(self.api.wait_for(object, limit, wanted))?)
    }

    pub(super) fn restart(&self) {
        self.runtime.block_on(self.api.restart(Restart {
            down: DOWN,
            lose_history: true,
        }));
    }
}
