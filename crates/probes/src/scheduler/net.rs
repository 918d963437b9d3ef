//! One attempt over the network, as the scheduler sees it; tests have their own.

use std::time::Duration;

use async_trait::async_trait;
use rubelet_api::probe::{HttpGet, ProbeHandler};

use crate::report::ProbeReport;

/// Network probes and httpGet hooks.
#[async_trait]
pub trait NetProbe: Send + Sync + 'static {
    /// Tries a network probe; `host` is the pod's address. Exec probes are not its business.
    async fn probe(&self, handler: &ProbeHandler, host: &str, timeout: Duration) -> ProbeReport;

    /// Runs an httpGet hook.
    async fn hook(&self, get: &HttpGet, host: &str, timeout: Duration) -> ProbeReport;
}
