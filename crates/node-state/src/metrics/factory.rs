//! Creation and registration of metrics.

use prometheus::{
    Counter, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    IntGauge, IntGaugeVec, Opts, Registry, core::Collector,
};

/// Buckets of the Prometheus client libraries, in seconds.
pub(super) const DEFAULT_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Buckets for operations that should take milliseconds, in seconds.
pub(super) const FAST_BUCKETS: &[f64] = &[
    0.000_5, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.035, 0.05, 0.09, 0.25, 0.5, 1.0, 2.5, 10.0,
    60.0,
];

/// Creates metrics of one registry. All names are constants of this crate, so no registration
/// fails.
pub(super) struct MetricFactory<'a> {
    registry: &'a Registry,
}

/// The level of stability, as Kubernetes writes it before each help text.
fn alpha(help: &str) -> String {
    format!("[ALPHA] {help}")
}

impl<'a> MetricFactory<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self { registry }
    }

    fn register<C: Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        let collector = made.expect("names, labels and buckets are well-formed constants");
        self.registry
            .register(Box::new(collector.clone()))
            .expect("each name is registered once");
        collector
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        let options = HistogramOpts::new(name, alpha(help)).buckets(buckets.to_vec());
        self.register(Histogram::with_opts(options))
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        buckets: Vec<f64>,
        label: &str,
    ) -> HistogramVec {
        let options = HistogramOpts::new(name, alpha(help)).buckets(buckets);
        self.register(HistogramVec::new(options, &[label]))
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::new(name, alpha(help)))
    }

    pub(super) fn counters(&self, name: &str, help: &str, label: &str) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, alpha(help)), &[label]))
    }

    pub(super) fn histograms_by(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
        labels: &[&str],
    ) -> HistogramVec {
        let options = HistogramOpts::new(name, alpha(help)).buckets(buckets.to_vec());
        self.register(HistogramVec::new(options, labels))
    }

    pub(super) fn counters_by(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, alpha(help)), labels))
    }

    pub(super) fn gauges_by(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.register(IntGaugeVec::new(Opts::new(name, alpha(help)), labels))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.register(IntGauge::new(name, alpha(help)))
    }

    pub(super) fn seconds(&self, name: &str, help: &str) -> Gauge {
        self.register(Gauge::new(name, alpha(help)))
    }

    /// A counter whose name Kubernetes does not change without a notice.
    pub(super) fn beta_counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::new(name, format!("[BETA] {help}")))
    }

    /// A gauge that Kubernetes has for its own tests only.
    pub(super) fn internal_seconds(&self, name: &str, help: &str) -> Gauge {
        self.register(Gauge::new(name, format!("[INTERNAL] {help}")))
    }

    /// A counter that every program has: it has no level of stability.
    pub(super) fn process_counter(&self, name: &str, help: &str) -> Counter {
        self.register(Counter::new(name, help))
    }

    /// A gauge that every program has. It has a single value, or none.
    pub(super) fn process_gauge(&self, name: &str, help: &str) -> GaugeVec {
        self.register(GaugeVec::new(Opts::new(name, help), &[]))
    }

    pub(super) fn gauges(&self, name: &str, help: &str, label: &str) -> IntGaugeVec {
        self.register(IntGaugeVec::new(Opts::new(name, alpha(help)), &[label]))
    }
}
