//! Metrics of a cgroup. Times are whole seconds, as the protocol has no fractions.

use rubelet_cri::v1::MetricType;
use rubelet_host::cgroup::{CgroupStats, IoStats};

use super::{LabelledValues, MetricDefinition, SECOND, block_device, counter, each, gauge};

const fn of_disks(
    name: &'static str,
    help: &'static str,
    of: fn(&CgroupStats) -> LabelledValues,
) -> MetricDefinition<CgroupStats> {
    each(name, help, MetricType::Counter, &["device"], of)
}

fn disks(stats: &CgroupStats, number: fn(&IoStats) -> u64) -> LabelledValues {
    let each = stats.io.iter();
    each.map(|io| (vec![block_device(io.major, io.minor)], number(io)))
        .collect()
}

/// The definitions.
pub(super) const METRICS: [MetricDefinition<CgroupStats>; 32] = [
    counter(
        "container_cpu_usage_seconds_total",
        "Processor time used",
        |stats| Some(stats.cpu?.usage_ns / SECOND),
    ),
    counter(
        "container_cpu_user_seconds_total",
        "Processor time in user space",
        |stats| Some(stats.cpu?.user_ns / SECOND),
    ),
    counter(
        "container_cpu_system_seconds_total",
        "Processor time in the kernel",
        |stats| Some(stats.cpu?.system_ns / SECOND),
    ),
    counter(
        "container_cpu_cfs_periods_total",
        "Elapsed periods of the CPU quota",
        |stats| Some(stats.cpu?.periods),
    ),
    counter(
        "container_cpu_cfs_throttled_periods_total",
        "Periods whose quota was used up",
        |stats| Some(stats.cpu?.throttled_periods),
    ),
    counter(
        "container_cpu_cfs_throttled_seconds_total",
        "Time throttled by the quota",
        |stats| Some(stats.cpu?.throttled_ns / SECOND),
    ),
    gauge(
        "container_memory_usage_bytes",
        "Memory in use, with the page cache",
        |stats| Some(stats.memory?.usage),
    ),
    gauge(
        "container_memory_working_set_bytes",
        "Memory that cannot be reclaimed easily",
        |stats| Some(stats.memory?.working_set),
    ),
    gauge("container_memory_rss", "Anonymous memory", |stats| {
        Some(stats.memory?.rss)
    }),
    gauge("container_memory_cache", "Page cache", |stats| {
        Some(stats.memory?.cache)
    }),
    gauge(
        "container_memory_mapped_file",
        "Files mapped into memory",
        |stats| Some(stats.memory?.mapped_file),
    ),
    gauge(
        "container_memory_kernel_usage",
        "Kernel memory used",
        |stats| Some(stats.memory?.kernel),
    ),
    gauge(
        "container_memory_max_usage_bytes",
        "Maximum memory usage",
        |stats| stats.memory?.max_usage,
    ),
    counter(
        "container_memory_failcnt",
        "Number of times the memory limit was reached",
        |stats| Some(stats.memory?.limit_hits),
    ),
    each(
        "container_memory_failures_total",
        "Page faults",
        MetricType::Counter,
        &["failure_type", "scope"],
        |stats| {
            let of = |kind: &str, number| (vec![kind.to_owned(), "hierarchy".to_owned()], number);
            let memory = stats.memory.iter();
            memory
                .flat_map(|memory| {
                    [
                        of("pgfault", memory.page_faults),
                        of("pgmajfault", memory.major_page_faults),
                    ]
                })
                .collect()
        },
    ),
    // Nothing where the kernel does not account it, as no swap space is used there.
    gauge("container_memory_swap", "Swap space in use", |stats| {
        Some(stats.swap.unwrap_or_default().usage)
    }),
    counter(
        "container_oom_events_total",
        "Processes killed by the OOM killer",
        |stats| Some(stats.memory?.oom_kills),
    ),
    gauge("container_threads", "Threads", |stats| {
        Some(stats.pids?.current)
    }),
    gauge(
        "container_threads_max",
        "Limit of threads, 0 for none",
        |stats| Some(stats.pids?.limit.unwrap_or(0)),
    ),
    gauge(
        "container_spec_memory_limit_bytes",
        "Limit of memory, 0 for none",
        |stats| Some(stats.memory?.limit.unwrap_or(0)),
    ),
    each(
        "container_hugetlb_usage_bytes",
        "Huge pages in use",
        MetricType::Gauge,
        &["pagesize"],
        |stats| {
            let each = stats.hugetlb.iter();
            each.map(|pages| (vec![pages.page_size.clone()], pages.usage))
                .collect()
        },
    ),
    of_disks(
        "container_fs_reads_bytes_total",
        "Bytes read from disks",
        |stats| disks(stats, |io| io.read_bytes),
    ),
    of_disks("container_fs_reads_total", "Reads from disks", |stats| {
        disks(stats, |io| io.reads)
    }),
    of_disks(
        "container_fs_writes_bytes_total",
        "Bytes written to disks",
        |stats| disks(stats, |io| io.write_bytes),
    ),
    of_disks("container_fs_writes_total", "Writes to disks", |stats| {
        disks(stats, |io| io.writes)
    }),
    each(
        "container_blkio_device_usage_total",
        "Bytes read from and written to block devices",
        MetricType::Counter,
        &["device", "major", "minor", "operation"],
        |stats| {
            let mut all = Vec::new();
            for io in &stats.io {
                for (operation, number) in [("Read", io.read_bytes), ("Write", io.write_bytes)] {
                    let device = block_device(io.major, io.minor);
                    let (major, minor) = (io.major.to_string(), io.minor.to_string());
                    all.push((vec![device, major, minor, operation.to_owned()], number));
                }
            }
            all
        },
    ),
    counter(
        "container_pressure_cpu_waiting_seconds_total",
        "Time in which some waited for a processor",
        |stats| Some(stats.psi.cpu?.some.total_ns / SECOND),
    ),
    counter(
        "container_pressure_cpu_stalled_seconds_total",
        "Time in which all waited for a processor",
        |stats| Some(stats.psi.cpu?.full.total_ns / SECOND),
    ),
    counter(
        "container_pressure_memory_waiting_seconds_total",
        "Time in which some waited for memory",
        |stats| Some(stats.psi.memory?.some.total_ns / SECOND),
    ),
    counter(
        "container_pressure_memory_stalled_seconds_total",
        "Time in which all waited for memory",
        |stats| Some(stats.psi.memory?.full.total_ns / SECOND),
    ),
    counter(
        "container_pressure_io_waiting_seconds_total",
        "Time in which some waited for disks",
        |stats| Some(stats.psi.io?.some.total_ns / SECOND),
    ),
    counter(
        "container_pressure_io_stalled_seconds_total",
        "Time in which all waited for disks",
        |stats| Some(stats.psi.io?.full.total_ns / SECOND),
    ),
];
