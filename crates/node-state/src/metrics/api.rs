//! Metrics of the communication with the API server.

use std::time::Duration;

use prometheus::{Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge};

use super::{
    factory::{FAST_BUCKETS, MetricFactory},
    probe::Probe,
};

/// Buckets of upstream's request durations, in seconds.
const REQUEST_BUCKETS: &[f64] = &[
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];
/// Buckets of upstream's status durations, in seconds.
const SYNC_BUCKETS: &[f64] = &[
    0.010, 0.050, 0.100, 0.500, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0,
];

/// Buckets of upstream's lives of certificates: a minute to four years, in seconds.
const ROTATION_BUCKETS: &[f64] = &[
    60.0,
    3_600.0,
    14_400.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
    124_416_000.0,
];

/// Metrics of requests to the API server.
pub struct ApiMetrics {
    requests: IntCounterVec,
    durations: HistogramVec,
    status_lag: Histogram,
    status_sync: Histogram,
    client_ttl: (Gauge, Probe<f64>),
    server_ttl: (Gauge, Probe<f64>),
    /// Failed renewals of the client certificate.
    pub client_renew_errors: IntCounter,
    /// Failed renewals of the kubelet serving certificate.
    pub server_renew_errors: IntCounter,
    server_rotation: Histogram,
    events_dropped: (IntGauge, Probe<u64>),
}

impl ApiMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            requests: factory.counters_by(
                "rest_client_requests_total",
                "Number of HTTP requests, partitioned by status code, method, and host.",
                &["code", "host", "method"],
            ),
            durations: factory.histograms_by(
                "rest_client_request_duration_seconds",
                "Request latency in seconds. Broken down by verb, and host.",
                REQUEST_BUCKETS,
                &["host", "verb"],
            ),
            status_lag: factory.histogram(
                "rubelet_pod_status_lag_seconds",
                "Time from a change of a pod's status until the patch is sent.",
                FAST_BUCKETS,
            ),
            status_sync: factory.histogram(
                "kubelet_pod_status_sync_duration_seconds",
                "Duration in seconds to sync a pod status update. Measures time from detection of a change to pod status until the API is successfully updated for that pod, even if multiple intevening changes to pod status occur.",
                SYNC_BUCKETS,
            ),
            client_ttl: ttl(factory, "client", "client"),
            server_ttl: ttl(factory, "server", "serving"),
            client_renew_errors: factory.counter(
                "kubelet_certificate_manager_client_expiration_renew_errors",
                "Counter of certificate renewal errors.",
            ),
            server_renew_errors: factory.counter(
                "kubelet_server_expiration_renew_errors",
                "Counter of certificate renewal errors.",
            ),
            server_rotation: factory.histogram(
                "kubelet_certificate_manager_server_rotation_seconds",
                "Histogram of the number of seconds the previous certificate lived before being rotated.",
                ROTATION_BUCKETS,
            ),
            events_dropped: (
                factory.gauge(
                    "rubelet_events_dropped",
                    "Events not sent to the API server since the agent started, except those beyond the limit of one object.",
                ),
                Probe::new(),
            ),
        }
    }

    /// Sets the source of the client certificate's remaining validity, evaluated at each scrape.
    pub fn set_client_ttl(&self, ttl: impl Fn() -> f64 + Send + Sync + 'static) {
        self.client_ttl.1.set(ttl);
    }

    /// The same of the kubelet serving certificate.
    pub fn set_server_ttl(&self, ttl: impl Fn() -> f64 + Send + Sync + 'static) {
        self.server_ttl.1.set(ttl);
    }

    /// The kubelet serving certificate was replaced at this age.
    pub fn server_rotated(&self, lived: Duration) {
        self.server_rotation.observe(lived.as_secs_f64());
    }

    /// Sets the source of the number of dropped events, evaluated at each scrape.
    pub fn set_events_dropped(&self, count: impl Fn() -> u64 + Send + Sync + 'static) {
        self.events_dropped.1.set(count);
    }

    /// Updates the metrics that are evaluated at each scrape.
    pub(super) fn look(&self) {
        for (gauge, ttl) in [&self.client_ttl, &self.server_ttl] {
            gauge.set(ttl.read().unwrap_or(f64::INFINITY));
        }
        let (gauge, count) = &self.events_dropped;
        let count = count.read().unwrap_or_default();
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A request to the API server got a response, or failed.
    pub fn request_ended(&self, method: &str, host: &str, code: Option<u16>, took: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let values = [code.as_str(), host, method];
        self.requests.with_label_values(&values).inc();
        let histogram = self.durations.with_label_values(&[host, method]);
        histogram.observe(took.as_secs_f64());
    }

    /// The patch of a status was sent this long after the status changed.
    pub fn status_sent(&self, lag: Duration) {
        self.status_lag.observe(lag.as_secs_f64());
    }

    /// The API server has a status this long after it changed.
    pub fn status_synced(&self, took: Duration) {
        self.status_sync.observe(took.as_secs_f64());
    }
}

fn ttl(factory: &MetricFactory<'_>, name: &str, kind: &str) -> (Gauge, Probe<f64>) {
    let gauge = factory.seconds(
        &format!("kubelet_certificate_manager_{name}_ttl_seconds"),
        &format!(
            "Gauge of the TTL (time-to-live) of the Kubelet's {kind} certificate. The value is in seconds until certificate expiry (negative if already expired). If {kind} certificate is invalid or unused, the value will be +INF."
        ),
    );
    (gauge, Probe::new())
}
