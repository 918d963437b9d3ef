//! Metrics of making and removing volumes.

use std::time::Duration;

use prometheus::HistogramVec;
use rubelet_api::volume_plugin::VolumePlugin;

use super::factory::MetricFactory;

/// Upstream's buckets of times of operations on volumes, in seconds.
const BUCKETS: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0,
];

/// An operation on a volume, with upstream's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeOperation {
    /// It is made, or its files are updated.
    Mount,
    /// It is removed.
    Unmount,
}

impl VolumeOperation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Mount => "volume_mount",
            Self::Unmount => "volume_unmount",
        }
    }
}

/// Metrics of making and removing volumes.
#[derive(Debug)]
pub struct StorageMetrics {
    operations: HistogramVec,
    totals: HistogramVec,
}

impl StorageMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            operations: factory.histograms_by(
                "storage_operation_duration_seconds",
                "Storage operation duration",
                BUCKETS,
                &["volume_plugin", "operation_name", "status", "migrated"],
            ),
            totals: factory.histograms_by(
                "volume_operation_total_seconds",
                "Storage operation end to end duration in seconds",
                BUCKETS,
                &["plugin_name", "operation_name"],
            ),
        }
    }

    /// An operation on a volume of this plugin took this long.
    pub fn operation_ended(
        &self,
        plugin: VolumePlugin,
        operation: VolumeOperation,
        took: Duration,
        is_ok: bool,
    ) {
        let status = if is_ok { "success" } else { "fail-unknown" };
        // No volume of an older plugin is handed to a CSI driver.
        let labels = [plugin.as_str(), operation.as_str(), status, "false"];
        let histogram = self.operations.with_label_values(&labels);
        histogram.observe(took.as_secs_f64());
    }

    /// A volume of this plugin was ready this long after its pod had been taken up.
    pub fn volume_ready(&self, plugin: VolumePlugin, took: Duration) {
        let labels = [plugin.as_str(), "overall_volume_mount"];
        let histogram = self.totals.with_label_values(&labels);
        histogram.observe(took.as_secs_f64());
    }
}
