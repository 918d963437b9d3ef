//! One attempt over the network, as this crate sees it; tests have their own.

use std::time::Duration;

use async_trait::async_trait;
use rubelet_api::probe::{HttpGet, ProbeHandler};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetVerdict {
    /// It passed.
    Passed,
    /// It passed, and an operator should know what was odd.
    Warned,
    /// It failed.
    Failed,
    /// There was no answer in time.
    TimedOut,
    /// It could not be made: it proves nothing about the target.
    Errored,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetReport {
    /// How it ended.
    pub verdict: NetVerdict,
    /// The text for events.
    pub output: String,
    /// How long it took.
    pub latency: Duration,
}

/// Network probes and httpGet hooks.
#[async_trait]
pub trait NetProbe: Send + Sync + 'static {
    /// Tries a network probe; `host` is the pod's address. Exec probes are not its business.
    async fn probe(&self, handler: &ProbeHandler, host: &str, timeout: Duration) -> NetReport;

    /// Runs an httpGet hook.
    async fn hook(&self, get: &HttpGet, host: &str, timeout: Duration) -> NetReport;
}
