//! Metrics of images.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, IntGauge};
use rubelet_api::container::PullPolicy;

use super::factory::MetricFactory;

/// Upstream's buckets of times of pulls, in seconds.
const PULL_BUCKETS: &[f64] = &[
    1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0,
    1200.0, 1800.0, 2700.0, 3600.0,
];

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Upstream's classes of sizes of images, each with the size in bytes that it is larger than.
const SIZE_CLASSES: &[(u64, &str)] = &[
    (100 * GIB, "GT100GB"),
    (60 * GIB, "60GB-100GB"),
    (40 * GIB, "40GB-60GB"),
    (30 * GIB, "30GB-40GB"),
    (20 * GIB, "20GB-30GB"),
    (10 * GIB, "10GB-20GB"),
    (5 * GIB, "5GB-10GB"),
    (GIB, "1GB-5GB"),
    (500 * MIB, "500MB-1GB"),
    (100 * MIB, "100MB-500MB"),
    (10 * MIB, "10MB-100MB"),
    (0, "0-10MB"),
];

/// The size class of an image; upstream has none for one whose size is unknown.
fn size_class(bytes: u64) -> &'static str {
    let class = SIZE_CLASSES.iter().find(|(above, _)| bytes > *above);
    class.map_or("N/A", |(_, class)| class)
}

/// Why a pod may use a present image, or may not, with upstream's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessVerdict {
    /// The policy lets all pods use it.
    Policy,
    /// It was pulled with credentials that the pod has.
    Record,
    /// The pod has to show that it may pull it.
    MustAuthenticate,
    /// The records could not be read.
    Error,
}

impl AccessVerdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "credentialPolicyAllowed",
            Self::Record => "credentialRecordFound",
            Self::MustAuthenticate => "mustAuthenticate",
            Self::Error => "error",
        }
    }
}

/// Metrics of images.
#[derive(Debug)]
pub struct ImageMetrics {
    collected: IntCounterVec,
    pulls: HistogramVec,
    requests: IntCounterVec,
    access_checks: IntCounterVec,
    intents: IntGauge,
    records: IntGauge,
    plugin_calls: HistogramVec,
    plugin_errors: IntCounterVec,
}

impl ImageMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        let collected = factory.counters(
            "kubelet_image_garbage_collected_total",
            "Total number of images garbage collected by the kubelet, whether through disk usage or \
             image age.",
            "reason",
        );
        for reason in ["age", "space"] {
            collected.with_label_values(&[reason]);
        }
        Self {
            collected,
            pulls: factory.histograms(
                "kubelet_image_pull_duration_seconds",
                "Duration in seconds to pull an image.",
                PULL_BUCKETS.to_vec(),
                "image_size_in_bytes",
            ),
            requests: factory.counters_by(
                "kubelet_image_manager_ensure_image_requests_total",
                "Number of ensure-image requests processed by the kubelet.",
                &["pull_policy", "present_locally", "pull_required"],
            ),
            access_checks: factory.counters(
                "kubelet_imagemanager_image_mustpull_checks_total",
                "Counter for how many times kubelet checked whether credentials need to be \
                 re-verified to access an image",
                "result",
            ),
            intents: factory.gauge(
                "kubelet_imagemanager_ondisk_pullintents",
                "Number of ImagePullIntents stored on disk.",
            ),
            records: factory.gauge(
                "kubelet_imagemanager_ondisk_pulledrecords",
                "Number of ImagePulledRecords stored on disk.",
            ),
            plugin_calls: factory.histograms(
                "kubelet_credential_provider_plugin_duration",
                "Duration of execution in seconds for credential provider plugin",
                super::factory::DEFAULT_BUCKETS.to_vec(),
                "plugin_name",
            ),
            plugin_errors: factory.counters(
                "kubelet_credential_provider_plugin_errors_total",
                "Number of errors from credential provider plugin",
                "plugin_name",
            ),
        }
    }

    /// Counts an unused image that was removed because of its `age` or for `space`.
    pub fn collected(&self, reason: &str) {
        self.collected.with_label_values(&[reason]).inc();
    }

    /// An image of this size in bytes was pulled in this time, waiting for other pulls included.
    pub fn pulled(&self, bytes: u64, took: Duration) {
        let histogram = self.pulls.with_label_values(&[size_class(bytes)]);
        histogram.observe(took.as_secs_f64());
    }

    /// Counts a look for the image of a container: whether it was present, and whether it had to be pulled. `None`:
    /// that was not found out.
    pub fn requested(&self, policy: PullPolicy, is_present: Option<bool>, is_pulled: Option<bool>) {
        let policy = match policy {
            PullPolicy::Always => "always",
            PullPolicy::IfNotPresent => "ifnotpresent",
            PullPolicy::Never => "never",
        };
        let answer = |known: Option<bool>| match known {
            Some(true) => "true",
            Some(false) => "false",
            None => "unknown",
        };
        let labels = [policy, answer(is_present), answer(is_pulled)];
        self.requests.with_label_values(&labels).inc();
    }

    /// Counts a check whether a pod may use a present image.
    pub fn access_checked(&self, verdict: AccessVerdict) {
        self.access_checks
            .with_label_values(&[verdict.as_str()])
            .inc();
    }

    /// So many intents and records of pulls are on disk.
    pub fn set_on_disk(&self, intents: usize, records: usize) {
        let gauge = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.intents.set(gauge(intents));
        self.records.set(gauge(records));
    }

    /// A credential provider plugin ran for this time.
    pub fn plugin_ran(&self, plugin: &str, took: Duration, is_ok: bool) {
        let histogram = self.plugin_calls.with_label_values(&[plugin]);
        histogram.observe(took.as_secs_f64());
        if !is_ok {
            self.plugin_errors.with_label_values(&[plugin]).inc();
        }
    }
}
