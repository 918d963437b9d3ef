//! Numbers of images.

use prometheus::IntCounterVec;

use super::make::Maker;

/// Numbers of images.
#[derive(Debug)]
pub struct ImageMetrics {
    collected: IntCounterVec,
}

impl ImageMetrics {
    pub(super) fn new(maker: &Maker<'_>) -> Self {
        let collected = maker.counters(
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

    /// Counts an image that was removed because it was unused: for its `age`, or for `space`.
    pub fn collected(&self, reason: &str) {
        self.collected.with_label_values(&[reason]).inc();
    }
}
