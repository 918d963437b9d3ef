//! The machine, and whether all numbers could be read.

use crate::{
    exposition::{Exposition, MetricKind::Gauge},
    sample::StatsSample,
};

/// Writes the metrics.
pub(super) fn write(metrics: &mut Exposition, sample: &StatsSample) {
    let node = &sample.node;
    let swap = node
        .usage
        .swap
        .and_then(|swap| swap.usage?.checked_add(swap.available?));
    let failed = u64::from(!sample.problems.is_empty());
    for (name, help, number) in [
        (
            "machine_cpu_cores",
            "Processors that are online",
            node.cores,
        ),
        (
            "machine_memory_bytes",
            "Memory of the machine",
            node.memory_capacity,
        ),
        ("machine_swap_bytes", "Swap space of the machine", swap),
        (
            "container_scrape_error",
            "1 if a number could not be read, else 0",
            Some(failed),
        ),
    ] {
        metrics.metric(name, Gauge, help, |values| {
            if let Some(number) = number {
                values.add(&[], number as f64, None);
            }
        });
    }
}
