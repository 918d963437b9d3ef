//! The trait for attempts over the network; tests have their own implementations.

use std::time::Duration;

use async_trait::async_trait;
use rubelet_api::probe::{HttpGet, ProbeHandler};

use crate::report::ProbeReport;

/// Network probes and httpGet hooks.
#[async_trait]
pub trait NetProbe: Send + Sync + 'static {
    /// Tries a network probe; `host` is the pod's address. Does not support exec probes.
    async fn probe(&self, handler: &ProbeHandler, host: &str, timeout: Duration) -> ProbeReport;

    /// Runs an httpGet hook.
    async fn hook(&self, get: &HttpGet, host: &str, timeout: Duration) -> ProbeReport;
}
