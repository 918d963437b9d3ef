//! Metrics under cAdvisor's names, for kubelets that take `/metrics/cadvisor` from the runtime
//! (KEP-2371).

mod cgroup;
mod container;
mod link;

use rubelet_cri::v1::{self, MetricType};
use rubelet_host::{cgroup::CgroupStats, netlink::Link};

use super::convert::value;
pub(super) use container::{ContainerInfo, LayerDisk, ProcessCounts, block_device};

/// Labels of every metric: the object.
const OBJECT_LABELS: [&str; 2] = ["id", "name"];

const SECOND: u64 = 1_000_000_000;

/// Values of one metric, each with the values of its labels.
type LabelledValues = Vec<(Vec<String>, u64)>;

/// One metric.
struct MetricDefinition<T: ?Sized> {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    /// Labels besides [`OBJECT_LABELS`].
    labels: &'static [&'static str],
    of: MetricValues<T>,
}

/// Functions that return the values of a metric.
enum MetricValues<T: ?Sized> {
    One(fn(&T) -> Option<u64>),
    /// One for each set of values of the labels.
    Each(fn(&T) -> LabelledValues),
}

const fn counter<T: ?Sized>(
    name: &'static str,
    help: &'static str,
    of: fn(&T) -> Option<u64>,
) -> MetricDefinition<T> {
    MetricDefinition {
        name,
        help,
        kind: MetricType::Counter,
        labels: &[],
        of: MetricValues::One(of),
    }
}

const fn gauge<T: ?Sized>(
    name: &'static str,
    help: &'static str,
    of: fn(&T) -> Option<u64>,
) -> MetricDefinition<T> {
    MetricDefinition {
        kind: MetricType::Gauge,
        ..counter(name, help, of)
    }
}

/// Several values under one name.
const fn each<T: ?Sized>(
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    labels: &'static [&'static str],
    of: fn(&T) -> LabelledValues,
) -> MetricDefinition<T> {
    MetricDefinition {
        name,
        help,
        kind,
        labels,
        of: MetricValues::Each(of),
    }
}

/// Descriptors of all metrics.
pub(crate) fn descriptors() -> Vec<v1::MetricDescriptor> {
    let mut all = Vec::new();
    all.extend(cgroup::METRICS.iter().map(descriptor));
    all.extend(link::METRICS.iter().map(descriptor));
    all.extend(container::METRICS.iter().map(descriptor));
    all
}

fn descriptor<T: ?Sized>(described: &MetricDefinition<T>) -> v1::MetricDescriptor {
    let keys = OBJECT_LABELS.iter().chain(described.labels);
    v1::MetricDescriptor {
        name: described.name.to_owned(),
        help: described.help.to_owned(),
        label_keys: keys.map(|key| (*key).to_owned()).collect(),
    }
}

/// The metrics of a cgroup that belongs to the object `id` called `name`.
pub(super) fn of_cgroup(stats: &CgroupStats, id: &str, name: &str) -> Vec<v1::Metric> {
    collect(&cgroup::METRICS, stats, id, name)
}

/// The metrics of an interface of the pod `id` called `name`.
pub(super) fn of_link(link: &Link, id: &str, name: &str) -> Vec<v1::Metric> {
    collect(&link::METRICS, link, id, name)
}

/// The metrics of the container `id` called `name` that its cgroup does not have.
pub(super) fn of_container(known: &ContainerInfo, id: &str, name: &str) -> Vec<v1::Metric> {
    collect(&container::METRICS, known, id, name)
}

fn collect<T>(all: &[MetricDefinition<T>], about: &T, id: &str, name: &str) -> Vec<v1::Metric> {
    let mut metrics = Vec::with_capacity(all.len());
    for described in all {
        let numbers = match described.of {
            MetricValues::One(of) => of(about)
                .map(|number| (Vec::new(), number))
                .into_iter()
                .collect(),
            MetricValues::Each(of) => of(about),
        };
        metrics.extend(numbers.into_iter().map(|(labels, number)| {
            v1::Metric {
                name: described.name.to_owned(),
                // 0 means gathered live.
                timestamp: 0,
                metric_type: described.kind.into(),
                // In the order of the keys.
                label_values: [id, name]
                    .into_iter()
                    .map(ToOwned::to_owned)
                    .chain(labels)
                    .collect(),
                value: value(number),
            }
        }));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use rubelet_host::cgroup::{IoStats, MemoryStats, PidsStats};

    use super::*;

    #[test]
    fn each_metric_is_described_with_as_many_labels_as_it_has() {
        let stats = CgroupStats {
            pids: Some(PidsStats {
                current: 3,
                limit: None,
            }),
            memory: Some(MemoryStats::default()),
            io: vec![IoStats::default()],
            ..CgroupStats::default()
        };
        let mut all = of_cgroup(&stats, "id", "name");
        all.extend(of_container(&ContainerInfo::default(), "id", "name"));
        let described = descriptors();
        for metric in &all {
            let descriptor = described.iter().find(|one| one.name == metric.name);
            let keys = &descriptor.unwrap().label_keys;
            assert_eq!(keys.len(), metric.label_values.len(), "{}", metric.name);
        }
        let threads = all.iter().find(|one| one.name == "container_threads");
        assert_eq!(threads.unwrap().value, value(3));
        let cpu = "container_cpu_usage_seconds_total";
        assert!(
            all.iter().all(|one| one.name != cpu),
            "numbers that are missing are not told"
        );
    }
}
