//! Metrics of lifecycle hooks.

use prometheus::IntCounter;

use super::factory::MetricFactory;

/// Metrics of lifecycle hooks.
#[derive(Debug)]
pub struct HookMetrics {
    http_fallbacks: IntCounter,
    interrupted_sleeps: IntCounter,
}

impl HookMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            http_fallbacks: factory.counter(
                "kubelet_lifecycle_handler_http_fallbacks_total",
                "The number of times lifecycle handlers successfully fell back to http from https.",
            ),
            interrupted_sleeps: factory.counter(
                "kubelet_sleep_action_terminated_early_total",
                "The number of times lifecycle sleep handler got terminated before it finishes",
            ),
        }
    }

    /// Counts a hook over HTTPS that succeeded over HTTP.
    pub fn fell_back(&self) {
        self.http_fallbacks.inc();
    }

    /// A `sleep` hook begins; it counts as interrupted if what is returned is dropped before it is done.
    pub fn sleeping(&self) -> HookSleep<'_> {
        HookSleep {
            interrupted: Some(&self.interrupted_sleeps),
        }
    }
}

/// A `sleep` hook that goes on.
#[must_use = "it counts as interrupted when this is dropped"]
#[derive(Debug)]
pub struct HookSleep<'a> {
    interrupted: Option<&'a IntCounter>,
}

impl HookSleep<'_> {
    /// Its time is over.
    pub fn done(mut self) {
        self.interrupted = None;
    }
}

impl Drop for HookSleep<'_> {
    fn drop(&mut self) {
        if let Some(interrupted) = self.interrupted {
            interrupted.inc();
        }
    }
}
