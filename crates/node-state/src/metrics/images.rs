//! Metrics of images.

use prometheus::IntCounterVec;

use super::factory::MetricFactory;

/// Metrics of images.
#[derive(Debug)]
pub struct ImageMetrics {
    collected: IntCounterVec,
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
        Self { collected }
    }

    /// Counts an unused image that was removed because of its `age` or for `space`.
    pub fn collected(&self, reason: &str) {
        self.collected.with_label_values(&[reason]).inc();
    }
}
