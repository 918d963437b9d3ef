//! Network probes and hooks over real sockets.

use std::time::Duration;

use async_trait::async_trait;
use rubelet_api::probe::{HttpGet, ProbeHandler};

use super::net::NetProbe;
use crate::{
    prober::Prober,
    report::{ProbeOutcome, ProbeReport},
};

#[async_trait]
impl NetProbe for Prober {
    async fn probe(&self, handler: &ProbeHandler, host: &str, timeout: Duration) -> ProbeReport {
        match handler {
            ProbeHandler::Http(get) => self.http(get, host, timeout).await,
            ProbeHandler::Tcp(socket) => self.tcp(socket, host, timeout).await,
            ProbeHandler::Grpc(check) => self.grpc(check, host, timeout).await,
            ProbeHandler::Exec(_) => ProbeReport {
                verdict: ProbeOutcome::Errored,
                output: "exec probes do not use the network".to_owned(),
                latency: Duration::ZERO,
            },
        }
    }

    async fn hook(&self, get: &HttpGet, host: &str, timeout: Duration) -> ProbeReport {
        self.http_hook(get, host, timeout).await
    }
}
