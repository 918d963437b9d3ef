//! CPU, memory, processes, pressure, limits and networks of objects.

use rubelet_host::cgroup::{CgroupStats, PressureLine};

use super::{MeasuredObject, add, seconds};
use crate::{
    exposition::{
        Exposition,
        MetricKind::{self, Counter, Gauge},
    },
    sample::{ContainerSample, InterfaceSample, UsageSample},
};

/// A metric of an object, without further labels.
type UsageMetric = (
    &'static str,
    MetricKind,
    &'static str,
    fn(&UsageSample) -> Option<f64>,
);

/// A metric that only cgroups have.
type CgroupMetric = (
    &'static str,
    MetricKind,
    &'static str,
    fn(&CgroupStats) -> Option<f64>,
);

/// A metric that only containers have.
type ContainerMetric = (
    &'static str,
    &'static str,
    fn(&ContainerSample) -> Option<f64>,
);

/// A metric of a network interface.
type InterfaceMetric = (
    &'static str,
    &'static str,
    fn(&InterfaceSample) -> Option<u64>,
);

fn stalled(line: PressureLine) -> f64 {
    seconds(line.total_ns)
}

const USAGE: &[UsageMetric] = &[
    ("container_memory_rss", Gauge, "Anonymous memory", |usage| {
        Some(usage.memory?.rss? as f64)
    }),
    (
        "container_memory_swap",
        Gauge,
        "Swap space in use",
        |usage| Some(usage.swap?.usage? as f64),
    ),
    (
        "container_memory_usage_bytes",
        Gauge,
        "Memory in use, with the page cache",
        |usage| Some(usage.memory?.usage? as f64),
    ),
    (
        "container_memory_working_set_bytes",
        Gauge,
        "Memory in use, without the inactive page cache",
        |usage| Some(usage.memory?.working_set? as f64),
    ),
    (
        "container_pressure_cpu_stalled_seconds_total",
        Counter,
        "Time in which all processes waited for a processor",
        |usage| Some(stalled(usage.cpu?.pressure?.full)),
    ),
    (
        "container_pressure_cpu_waiting_seconds_total",
        Counter,
        "Time in which some process waited for a processor",
        |usage| Some(stalled(usage.cpu?.pressure?.some)),
    ),
    (
        "container_pressure_io_stalled_seconds_total",
        Counter,
        "Time in which all processes waited for disks",
        |usage| Some(stalled(usage.io?.pressure.full)),
    ),
    (
        "container_pressure_io_waiting_seconds_total",
        Counter,
        "Time in which some process waited for disks",
        |usage| Some(stalled(usage.io?.pressure.some)),
    ),
    (
        "container_pressure_memory_stalled_seconds_total",
        Counter,
        "Time in which all processes waited for memory",
        |usage| Some(stalled(usage.memory?.pressure?.full)),
    ),
    (
        "container_pressure_memory_waiting_seconds_total",
        Counter,
        "Time in which some process waited for memory",
        |usage| Some(stalled(usage.memory?.pressure?.some)),
    ),
];

const CGROUP: &[CgroupMetric] = &[
    (
        "container_cpu_system_seconds_total",
        Counter,
        "CPU time in the kernel",
        |stats| Some(seconds(stats.cpu?.system_ns)),
    ),
    (
        "container_cpu_user_seconds_total",
        Counter,
        "CPU time in user space",
        |stats| Some(seconds(stats.cpu?.user_ns)),
    ),
    ("container_memory_cache", Gauge, "Page cache", |stats| {
        Some(stats.memory?.cache as f64)
    }),
    (
        "container_memory_failcnt",
        Counter,
        "How often the memory limit was hit",
        |stats| Some(stats.memory?.limit_hits as f64),
    ),
    (
        "container_memory_kernel_usage",
        Gauge,
        "Memory of the kernel",
        |stats| Some(stats.memory?.kernel as f64),
    ),
    (
        "container_memory_mapped_file",
        Gauge,
        "Files mapped into memory",
        |stats| Some(stats.memory?.mapped_file as f64),
    ),
    (
        "container_memory_max_usage_bytes",
        Gauge,
        "Peak of the memory in use",
        |stats| Some(stats.memory?.max_usage? as f64),
    ),
    (
        "container_oom_events_total",
        Counter,
        "Processes that the OOM killer killed",
        |stats| Some(stats.memory?.oom_kills as f64),
    ),
    // Without a limit cAdvisor shows 0.
    (
        "container_spec_memory_limit_bytes",
        Gauge,
        "Memory limit, 0 for none",
        |stats| Some(stats.memory?.limit.unwrap_or(0) as f64),
    ),
    (
        "container_spec_memory_swap_limit_bytes",
        Gauge,
        "Limit of swap space, 0 for none",
        |stats| Some(stats.swap?.limit.unwrap_or(0) as f64),
    ),
    (
        "container_threads",
        Gauge,
        "Processes and threads",
        |stats| Some(stats.pids?.current as f64),
    ),
    (
        "container_threads_max",
        Gauge,
        "Limit of processes and threads, 0 for none",
        |stats| Some(stats.pids?.limit.unwrap_or(0) as f64),
    ),
];

/// Of cgroups with a quota only.
const QUOTA: &[CgroupMetric] = &[
    (
        "container_cpu_cfs_periods_total",
        Counter,
        "Elapsed periods of the CPU quota",
        |stats| Some(stats.cpu?.periods as f64),
    ),
    (
        "container_cpu_cfs_throttled_periods_total",
        Counter,
        "Periods in which the CPU quota was used up",
        |stats| Some(stats.cpu?.throttled_periods as f64),
    ),
    (
        "container_cpu_cfs_throttled_seconds_total",
        Counter,
        "Time in which the CPU quota was used up",
        |stats| Some(seconds(stats.cpu?.throttled_ns)),
    ),
];

const CONTAINER: &[ContainerMetric] = &[
    (
        "container_spec_cpu_period",
        "Length of a period of the CPU quota, in microseconds",
        |of| Some(of.cpu_spec.period_us as f64),
    ),
    (
        "container_spec_cpu_quota",
        "CPU time in each period, in microseconds",
        |of| Some(of.cpu_spec.quota_us? as f64),
    ),
    (
        "container_spec_cpu_shares",
        "Share of the processors, 1024 for a core",
        |of| Some(of.cpu_spec.shares as f64),
    ),
    (
        "container_start_time_seconds",
        "Start time in seconds since 1970",
        |of| Some(of.started_at.as_second() as f64),
    ),
];

const INTERFACES: &[InterfaceMetric] = &[
    (
        "container_network_receive_bytes_total",
        "Bytes received",
        |one| one.rx_bytes,
    ),
    (
        "container_network_receive_errors_total",
        "Errors of receiving",
        |one| one.rx_errors,
    ),
    (
        "container_network_receive_packets_total",
        "Packets received",
        |one| one.rx_packets,
    ),
    (
        "container_network_receive_packets_dropped_total",
        "Packets that came and were dropped",
        |one| one.rx_dropped,
    ),
    (
        "container_network_transmit_bytes_total",
        "Bytes sent",
        |one| one.tx_bytes,
    ),
    (
        "container_network_transmit_errors_total",
        "Errors of sending",
        |one| one.tx_errors,
    ),
    (
        "container_network_transmit_packets_total",
        "Packets sent",
        |one| one.tx_packets,
    ),
    (
        "container_network_transmit_packets_dropped_total",
        "Packets that were to be sent and were dropped",
        |one| one.tx_dropped,
    ),
];

/// Writes the metrics.
pub(super) fn write(metrics: &mut Exposition, objects: &[MeasuredObject<'_>]) {
    let name = "container_cpu_usage_seconds_total";
    metrics.metric(name, Counter, "CPU time", |values| {
        for object in objects {
            if let Some(cpu) = object.usage.cpu {
                let (used, at) = (seconds(cpu.usage_ns), Some(cpu.at));
                add(values, object, [("cpu", "total")], used, at);
            }
        }
    });
    for (name, kind, help, number) in USAGE {
        metrics.metric(name, *kind, help, |values| {
            for object in objects {
                if let Some(value) = number(&object.usage) {
                    let at = object.usage.memory.map(|memory| memory.at);
                    add(values, object, [], value, at);
                }
            }
        });
    }
    write_cgroups(metrics, CGROUP, objects, |_| true);
    write_cgroups(metrics, QUOTA, objects, |stats| {
        stats.cpu.is_some_and(|cpu| cpu.periods > 0)
    });
    write_failures(metrics, objects);
    for (name, help, number) in CONTAINER {
        metrics.metric(name, Gauge, help, |values| {
            for object in objects {
                if let Some(value) = object.of.and_then(number) {
                    add(values, object, [], value, None);
                }
            }
        });
    }
    let name = "container_last_seen";
    metrics.metric(
        name,
        Gauge,
        "Time of the reading, in seconds since 1970",
        |values| {
            for object in objects {
                if let Some(cpu) = object.usage.cpu {
                    add(values, object, [], cpu.at.as_second() as f64, None);
                }
            }
        },
    );
    for (name, help, number) in INTERFACES {
        metrics.metric(name, Counter, help, |values| {
            for object in objects {
                let Some(network) = object.network else {
                    continue;
                };
                for interface in &network.interfaces {
                    if let Some(value) = number(interface) {
                        let (label, at) = (("interface", &*interface.name), Some(network.at));
                        add(values, object, [label], value as f64, at);
                    }
                }
            }
        });
    }
}

fn write_cgroups(
    metrics: &mut Exposition,
    definitions: &[CgroupMetric],
    objects: &[MeasuredObject<'_>],
    has: fn(&CgroupStats) -> bool,
) {
    for (name, kind, help, number) in definitions {
        metrics.metric(name, *kind, help, |values| {
            for object in objects {
                let Some(cgroup) = object.cgroup.filter(|cgroup| has(&cgroup.stats)) else {
                    continue;
                };
                if let Some(value) = number(&cgroup.stats) {
                    add(values, object, [], value, Some(cgroup.at));
                }
            }
        });
    }
}

/// Page faults. Those of the cgroup alone and those with the cgroups below it are the same for
/// containers, and only the latter are known for others.
fn write_failures(metrics: &mut Exposition, objects: &[MeasuredObject<'_>]) {
    let name = "container_memory_failures_total";
    metrics.metric(name, Counter, "Page faults", |values| {
        for object in objects {
            let Some(memory) = object.usage.memory else {
                continue;
            };
            let scopes: &[&str] = match object.of {
                Some(_) => &["container", "hierarchy"],
                None => &["hierarchy"],
            };
            let faults = [
                ("pgfault", memory.page_faults),
                ("pgmajfault", memory.major_page_faults),
            ];
            for (kind, number) in faults {
                for scope in scopes {
                    if let Some(number) = number {
                        let labels = [("failure_type", kind), ("scope", *scope)];
                        add(values, object, labels, number as f64, Some(memory.at));
                    }
                }
            }
        }
    });
}
