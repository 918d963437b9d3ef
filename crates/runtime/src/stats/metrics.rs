//! Raw numbers under the names that cAdvisor gave them, for kubelets that take `/metrics/cadvisor`
//! from the runtime.

use rubelet_cri::v1::{self, MetricType};
use rubelet_host::{cgroup::CgroupStats, netlink::Link};

use super::convert::value;

/// What a metric is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Cgroup,
    Interface,
}

/// One metric: its name, what it says, its type, and where its number comes from.
struct Described {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    about: About,
}

const fn counter(name: &'static str, help: &'static str, about: About) -> Described {
    let kind = MetricType::Counter;
    Described {
        name,
        help,
        kind,
        about,
    }
}

const fn gauge(name: &'static str, help: &'static str, about: About) -> Described {
    let kind = MetricType::Gauge;
    Described {
        name,
        help,
        kind,
        about,
    }
}

type OfCgroup = fn(&CgroupStats) -> Option<u64>;
type OfLink = fn(&Link) -> u64;

/// Numbers of a cgroup. Times are whole seconds, as the protocol has no fractions.
const CGROUP: [(Described, OfCgroup); 16] = [
    (
        counter(
            "container_cpu_usage_seconds_total",
            "Processor time used",
            About::Cgroup,
        ),
        |stats| Some(stats.cpu?.usage_ns / SECOND),
    ),
    (
        counter(
            "container_cpu_user_seconds_total",
            "Processor time in user space",
            About::Cgroup,
        ),
        |stats| Some(stats.cpu?.user_ns / SECOND),
    ),
    (
        counter(
            "container_cpu_system_seconds_total",
            "Processor time in the kernel",
            About::Cgroup,
        ),
        |stats| Some(stats.cpu?.system_ns / SECOND),
    ),
    (
        counter(
            "container_cpu_cfs_periods_total",
            "Periods of the quota that passed",
            About::Cgroup,
        ),
        |stats| Some(stats.cpu?.periods),
    ),
    (
        counter(
            "container_cpu_cfs_throttled_periods_total",
            "Periods whose quota was used up",
            About::Cgroup,
        ),
        |stats| Some(stats.cpu?.throttled_periods),
    ),
    (
        counter(
            "container_cpu_cfs_throttled_seconds_total",
            "Time waited for a quota",
            About::Cgroup,
        ),
        |stats| Some(stats.cpu?.throttled_ns / SECOND),
    ),
    (
        gauge(
            "container_memory_usage_bytes",
            "Memory in use, with the page cache",
            About::Cgroup,
        ),
        |stats| Some(stats.memory?.usage),
    ),
    (
        gauge(
            "container_memory_working_set_bytes",
            "Memory that can't be taken back easily",
            About::Cgroup,
        ),
        |stats| Some(stats.memory?.working_set),
    ),
    (
        gauge("container_memory_rss", "Anonymous memory", About::Cgroup),
        |stats| Some(stats.memory?.rss),
    ),
    (
        gauge("container_memory_cache", "Page cache", About::Cgroup),
        |stats| Some(stats.memory?.cache),
    ),
    (
        gauge(
            "container_memory_mapped_file",
            "Files mapped into memory",
            About::Cgroup,
        ),
        |stats| Some(stats.memory?.mapped_file),
    ),
    (
        counter(
            "container_memory_failcnt",
            "How often the limit of memory was hit",
            About::Cgroup,
        ),
        |stats| Some(stats.memory?.limit_hits),
    ),
    (
        gauge("container_memory_swap", "Swap space in use", About::Cgroup),
        |stats| Some(stats.swap?.usage),
    ),
    (
        counter(
            "container_oom_events_total",
            "Processes killed for want of memory",
            About::Cgroup,
        ),
        |stats| Some(stats.memory?.oom_kills),
    ),
    (
        gauge("container_threads", "Processes and threads", About::Cgroup),
        |stats| Some(stats.pids?.current),
    ),
    (
        gauge(
            "container_spec_memory_limit_bytes",
            "Limit of memory, 0 for none",
            About::Cgroup,
        ),
        |stats| Some(stats.memory?.limit.unwrap_or(0)),
    ),
];

/// Numbers of a pod's interface.
const LINK: [(Described, OfLink); 4] = [
    (
        counter(
            "container_network_receive_bytes_total",
            "Bytes received",
            About::Interface,
        ),
        |link| link.counters.rx_bytes,
    ),
    (
        counter(
            "container_network_receive_errors_total",
            "Errors while receiving",
            About::Interface,
        ),
        |link| link.counters.rx_errors,
    ),
    (
        counter(
            "container_network_transmit_bytes_total",
            "Bytes sent",
            About::Interface,
        ),
        |link| link.counters.tx_bytes,
    ),
    (
        counter(
            "container_network_transmit_errors_total",
            "Errors while sending",
            About::Interface,
        ),
        |link| link.counters.tx_errors,
    ),
];

const SECOND: u64 = 1_000_000_000;

/// What may be told.
pub(crate) fn descriptors() -> Vec<v1::MetricDescriptor> {
    let cgroup = CGROUP.iter().map(|(described, _)| described);
    let link = LINK.iter().map(|(described, _)| described);
    cgroup
        .chain(link)
        .map(|described| v1::MetricDescriptor {
            name: described.name.to_owned(),
            help: described.help.to_owned(),
            label_keys: keys(described.about),
        })
        .collect()
}

/// The labels come in the order of the keys.
fn keys(about: About) -> Vec<String> {
    let keys: &[&str] = match about {
        About::Cgroup => &["id", "name"],
        About::Interface => &["id", "name", "interface"],
    };
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// The metrics of a cgroup that belongs to the object `id` called `name`.
pub(super) fn of_cgroup(stats: &CgroupStats, id: &str, name: &str) -> Vec<v1::Metric> {
    CGROUP
        .iter()
        .filter_map(|(described, of)| Some(metric(described, of(stats)?, &[id, name])))
        .collect()
}

/// The metrics of an interface of the pod `id` called `name`.
pub(super) fn of_link(link: &Link, id: &str, name: &str) -> Vec<v1::Metric> {
    LINK.iter()
        .map(|(described, of)| metric(described, of(link), &[id, name, &link.name]))
        .collect()
}

fn metric(described: &Described, number: u64, labels: &[&str]) -> v1::Metric {
    v1::Metric {
        name: described.name.to_owned(),
        // Gathered live.
        timestamp: 0,
        metric_type: described.kind.into(),
        label_values: labels.iter().map(|label| (*label).to_owned()).collect(),
        value: value(number),
    }
}

#[cfg(test)]
mod tests {
    use rubelet_host::cgroup::PidsStats;

    use super::*;

    #[test]
    fn each_metric_is_described_with_as_many_labels_as_it_has() {
        let stats = CgroupStats {
            pids: Some(PidsStats {
                current: 3,
                limit: None,
            }),
            ..CgroupStats::default()
        };
        let told = of_cgroup(&stats, "id", "name");
        assert_eq!(told.len(), 1, "numbers that are missing are not told");
        let all = descriptors();
        let described = all.iter().find(|one| one.name == told[0].name).unwrap();
        assert_eq!(described.label_keys.len(), told[0].label_values.len());
        assert_eq!(told[0].value, value(3));
    }
}
