//! Metrics of requests to the agent's ports.

use std::{collections::BTreeMap, time::Duration};

use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, core::Collector as _};

use super::factory::{DEFAULT_BUCKETS, MetricFactory};

/// Upstream's labels of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLabels {
    /// The method, or `other`.
    pub method: &'static str,
    /// The first part of the path, or `other`.
    pub path: &'static str,
    /// `readwrite` or `readonly`.
    pub server_type: &'static str,
    /// True for long-running requests.
    pub long_running: bool,
}

impl HttpLabels {
    const NAMES: [&'static str; 4] = ["method", "path", "server_type", "long_running"];

    fn values(&self) -> [&'static str; 4] {
        let long_running = if self.long_running { "true" } else { "false" };
        [self.method, self.path, self.server_type, long_running]
    }
}

/// Metrics of requests.
#[derive(Debug)]
pub struct HttpMetrics {
    requests: IntCounterVec,
    durations: HistogramVec,
    inflight: IntGaugeVec,
    responses: IntCounterVec,
    websockets: IntCounterVec,
    handshake_errors: IntCounter,
    refused: IntCounterVec,
    audit_events: IntCounter,
    audit_dropped: IntCounterVec,
}

impl HttpMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            requests: factory.counters_by(
                "kubelet_http_requests_total",
                "Number of the http requests received since the server started",
                &HttpLabels::NAMES,
            ),
            durations: factory.histograms_by(
                "kubelet_http_requests_duration_seconds",
                "Duration in seconds to serve http requests",
                DEFAULT_BUCKETS,
                &HttpLabels::NAMES,
            ),
            inflight: factory.gauges_by(
                "kubelet_http_inflight_requests",
                "Number of the inflight http requests",
                &HttpLabels::NAMES,
            ),
            responses: factory.counters_by(
                "rubelet_http_responses_total",
                "HTTP responses by status code.",
                &["code", "path", "server_type"],
            ),
            websockets: factory.counters_by(
                "kubelet_websocket_streaming_requests_total",
                "Total number of WebSocket streaming requests (exec/attach/portforward) received by the \
                 kubelet.",
                &["subresource"],
            ),
            handshake_errors: factory.counter(
                "rubelet_tls_handshake_errors_total",
                "Failed or timed out TLS handshakes with clients.",
            ),
            refused: factory.counters_by(
                "rubelet_connections_refused_total",
                "Connections closed by a listener, by listener and reason.",
                &["listener", "reason"],
            ),
            audit_events: factory.counter(
                "rubelet_audit_events_total",
                "Events written to the audit log.",
            ),
            audit_dropped: factory.counters_by(
                "rubelet_audit_events_dropped_total",
                "Events not written to the audit log, by reason.",
                &["reason"],
            ),
        }
    }

    /// A request was received.
    pub fn began(&self, labels: &HttpLabels) {
        let values = labels.values();
        self.requests.with_label_values(&values).inc();
        self.inflight.with_label_values(&values).inc();
    }

    /// Its response begins.
    pub fn answered(&self, labels: &HttpLabels, code: u16) {
        let code = code.to_string();
        let values = [code.as_str(), labels.path, labels.server_type];
        self.responses.with_label_values(&values).inc();
    }

    /// Its response is complete or abandoned, with the time since the request was received.
    pub fn ended(&self, labels: &HttpLabels, took: Duration) {
        let values = labels.values();
        self.inflight.with_label_values(&values).dec();
        let histogram = self.durations.with_label_values(&values);
        histogram.observe(took.as_secs_f64());
    }

    /// A session over a WebSocket begins.
    pub fn websocket(&self, subresource: &str) {
        self.websockets.with_label_values(&[subresource]).inc();
    }

    /// A TLS handshake with a client failed.
    pub fn handshake_failed(&self) {
        self.handshake_errors.inc();
    }

    /// A listener closed a connection.
    pub fn connection_refused(&self, listener: &str, reason: &str) {
        self.refused.with_label_values(&[listener, reason]).inc();
    }

    /// The number of closed connections, by listener and reason, such as `readwrite source`.
    #[must_use]
    pub fn refused_connections(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for family in self.refused.collect() {
            for metric in family.get_metric() {
                let labels: Vec<_> = metric.get_label().iter().map(|one| one.value()).collect();
                // A counter of whole numbers, kept by the library as a float.
                counts.insert(labels.join(" "), metric.get_counter().get_value() as u64);
            }
        }
        counts
    }

    /// Counts events written to the audit log.
    pub fn audit_written(&self, events: u64) {
        self.audit_events.inc_by(events);
    }

    /// Counts events not written to the audit log.
    pub fn audit_dropped(&self, reason: &str, events: u64) {
        self.audit_dropped
            .with_label_values(&[reason])
            .inc_by(events);
    }
}
