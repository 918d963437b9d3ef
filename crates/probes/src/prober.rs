//! Shared state of all attempts.

use std::{sync::Arc, time::Duration};

use http::HeaderValue;
use rubelet_api::probe::{GrpcCheck, HttpGet, TcpSocket};
use tokio::time::Instant;

use crate::{
    grpc, http as http_probe,
    report::{ProbeFailure, ProbeOutcome, ProbeReport},
    tcp,
    tls::Tls,
};

/// A timeout beyond the range of the clock is limited to this.
const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Runs attempts. Clones share their state: the user agent, and one TLS client, which is created on
/// demand.
#[derive(Clone)]
pub struct Prober(Arc<ProberParts>);

struct ProberParts {
    probe_agent: HeaderValue,
    hook_agent: HeaderValue,
    tls: Tls,
}

impl Prober {
    /// `version` is the Kubernetes version to report, `1.36`: probes send `User-Agent:
    /// kube-probe/1.36`, hooks `kube-lifecycle/1.36`.
    #[must_use]
    pub fn new(version: &str) -> Self {
        let agent = |purpose: &'static str| {
            HeaderValue::from_str(&format!("{purpose}/{version}"))
                .unwrap_or_else(|_| HeaderValue::from_static(purpose))
        };
        Self(Arc::new(ProberParts {
            probe_agent: agent("kube-probe"),
            hook_agent: agent("kube-lifecycle"),
            tls: Tls::default(),
        }))
    }

    /// An `httpGet` probe. Status 200 to 299 passes. Redirects on the same host are followed, at
    /// most 9; any other status from 300 to 399 passes with a warning that contains the body.
    /// `default_host` is the pod's address, used if the probe names no host. `timeout` limits the
    /// whole attempt.
    pub async fn http(&self, get: &HttpGet, default_host: &str, timeout: Duration) -> ProbeReport {
        report(timeout, |deadline| {
            let ProberParts {
                tls, probe_agent, ..
            } = &*self.0;
            http_probe::attempt(tls, probe_agent, get, default_host, deadline)
        })
        .await
    }

    /// A `tcpSocket` probe: a connection that opens within `timeout` passes.
    pub async fn tcp(
        &self,
        socket: &TcpSocket,
        default_host: &str,
        timeout: Duration,
    ) -> ProbeReport {
        report(timeout, |deadline| {
            tcp::attempt(socket, default_host, deadline)
        })
        .await
    }

    /// A `grpc` probe: plaintext HTTP/2, and the health service must answer SERVING. A connection
    /// that can't be opened is retried after a second, with a growing delay, within `timeout`.
    pub async fn grpc(&self, check: &GrpcCheck, host: &str, timeout: Duration) -> ProbeReport {
        report(timeout, |deadline| {
            grpc::attempt(&self.0.probe_agent, check, host, timeout, deadline)
        })
        .await
    }

    /// The `httpGet` of a lifecycle hook: any response passes, whatever its status. If an HTTPS
    /// hook got a response in plain HTTP and a second attempt without TLS passed, the report warns,
    /// and its output is the message of the event `LifecycleHTTPFallback`.
    pub async fn http_hook(
        &self,
        get: &HttpGet,
        default_host: &str,
        timeout: Duration,
    ) -> ProbeReport {
        report(timeout, |deadline| {
            let ProberParts {
                tls, hook_agent, ..
            } = &*self.0;
            http_probe::hook::attempt(tls, hook_agent, get, default_host, deadline)
        })
        .await
    }
}

async fn report<F>(timeout: Duration, attempt: impl FnOnce(Instant) -> F) -> ProbeReport
where
    F: Future<Output = Result<(ProbeOutcome, String), ProbeFailure>>,
{
    let started = Instant::now();
    let deadline = started.checked_add(timeout).unwrap_or(started + FAR);
    let (verdict, output) = match attempt(deadline).await {
        Ok(passed) => passed,
        Err(ProbeFailure { verdict, text }) => (verdict, text),
    };
    ProbeReport::new(verdict, output, started.elapsed())
}
