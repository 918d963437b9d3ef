//! Numbers of requests to the agent's ports.

use std::{collections::BTreeMap, time::Duration};

use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, core::Collector as _};

use super::make::{DEFAULT_BUCKETS, Maker};

/// Upstream's labels of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLabels {
    /// The method, or `other`.
    pub method: &'static str,
    /// The first part of the path, or `other`.
    pub path: &'static str,
    /// `readwrite` or `readonly`.
    pub server_type: &'static str,
    /// Whether requests of this kind continue for long.
    pub long_running: bool,
}

impl HttpLabels {
    const NAMES: [&'static str; 4] = ["method", "path", "server_type", "long_running"];

    fn values(&self) -> [&'static str; 4] {
        let long_running = if self.long_running { "true" } else { "false" };
        [self.method, self.path, self.server_type, long_running]
    }
}

/// Numbers of requests.
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
    pub(super) fn new(maker: &Maker<'_>) -> Self {
        Self {
            requests: maker.counters_by(
                "kubelet_http_requests_total",
                "Number of the http requests received since the server started",
                &HttpLabels::NAMES,
            ),
            durations: maker.histograms_by(
                "kubelet_http_requests_duration_seconds",
                "Duration in seconds to serve http requests",
                DEFAULT_BUCKETS,
                &HttpLabels::NAMES,
            ),
            inflight: maker.gauges_by(
                "kubelet_http_inflight_requests",
                "Number of the inflight http requests",
                &HttpLabels::NAMES,
            ),
            responses: maker.counters_by(
                "rubelet_http_responses_total",
                "Answers to http requests by status code; 401 and 403 are refusals.",
                &["code", "path", "server_type"],
            ),
            websockets: maker.counters_by(
                "kubelet_websocket_streaming_requests_total",
                "Total number of WebSocket streaming requests (exec/attach/portforward) received by the \
                 kubelet.",
                &["subresource"],
            ),
            handshake_errors: maker.counter(
                "rubelet_tls_handshake_errors_total",
                "TLS handshakes of clients that failed or took too long.",
            ),
            refused: maker.counters_by(
                "rubelet_connections_refused_total",
                "Connections that a listener closed by itself, by listener and reason.",
                &["listener", "reason"],
            ),
            audit_events: maker.counter(
                "rubelet_audit_events_total",
                "Events that were written to the audit log.",
            ),
            audit_dropped: maker.counters_by(
                "rubelet_audit_events_dropped_total",
                "Events that are missing in the audit log, by reason.",
                &["reason"],
            ),
        }
    }

    /// A request came.
    pub fn began(&self, labels: &HttpLabels) {
        let values = labels.values();
        self.requests.with_label_values(&values).inc();
        self.inflight.with_label_values(&values).inc();
    }

    /// Its answer begins.
    pub fn answered(&self, labels: &HttpLabels, code: u16) {
        let code = code.to_string();
        let values = [code.as_str(), labels.path, labels.server_type];
        self.responses.with_label_values(&values).inc();
    }

    /// Its answer is complete or abandoned this long after the request came.
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

    /// A client and the port could not agree on TLS.
    pub fn handshake_failed(&self) {
        self.handshake_errors.inc();
    }

    /// A listener closed a connection by itself.
    pub fn connection_refused(&self, listener: &str, reason: &str) {
        self.refused.with_label_values(&[listener, reason]).inc();
    }

    /// How many connections were closed, by listener and reason, such as `readwrite source`.
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

    /// How many events were written to the audit log.
    pub fn audit_written(&self, events: u64) {
        self.audit_events.inc_by(events);
    }

    /// How many are missing there.
    pub fn audit_dropped(&self, reason: &str, events: u64) {
        self.audit_dropped
            .with_label_values(&[reason])
            .inc_by(events);
    }
}
