//! Network probes and hooks over real sockets.

use std::time::Duration;

use async_trait::async_trait;
use rubelet_api::probe::{HttpGet, ProbeHandler};
use rubelet_probes::{ProbeOutcome, ProbeReport, Prober};

use super::net::{NetProbe, NetReport, NetVerdict};

#[async_trait]
impl NetProbe for Prober {
    async fn probe(&self, handler: &ProbeHandler, host: &str, timeout: Duration) -> NetReport {
        let report = match handler {
            ProbeHandler::Http(get) => self.http(get, host, timeout).await,
            ProbeHandler::Tcp(socket) => self.tcp(socket, host, timeout).await,
            ProbeHandler::Grpc(check) => self.grpc(check, host, timeout).await,
            ProbeHandler::Exec(_) => {
                return NetReport {
                    verdict: NetVerdict::Errored,
                    output: "a command can't be run over the network".to_owned(),
                    latency: Duration::ZERO,
                };
            }
        };
        report.into()
    }

    async fn hook(&self, get: &HttpGet, host: &str, timeout: Duration) -> NetReport {
        self.http_hook(get, host, timeout).await.into()
    }
}

impl From<ProbeReport> for NetReport {
    fn from(report: ProbeReport) -> Self {
        Self {
            verdict: match report.verdict {
                ProbeOutcome::Passed => NetVerdict::Passed,
                ProbeOutcome::Warned => NetVerdict::Warned,
                ProbeOutcome::Failed => NetVerdict::Failed,
                ProbeOutcome::TimedOut => NetVerdict::TimedOut,
                ProbeOutcome::Errored => NetVerdict::Errored,
            },
            output: report.output,
            latency: report.latency,
        }
    }
}
