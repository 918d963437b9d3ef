//! Metrics of a container that do not come from its cgroup.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rubelet_cri::v1::MetricType;
use rubelet_oci::{Cpu, LinuxResources};

use super::{LabelledValues, MetricDefinition, SECOND, each, gauge};

/// Data of a running container.
#[derive(Debug, Default)]
pub(crate) struct ContainerInfo {
    /// Time of the measurement, in nanoseconds since 1970.
    pub(crate) now: u64,
    /// Start time of its program, in nanoseconds since 1970.
    pub(crate) started_at: u64,
    /// Limits in force.
    pub(crate) resources: LinuxResources,
    /// Its processes.
    pub(crate) processes: ProcessCounts,
    /// Its writable layer, and the file system that it is on.
    pub(crate) disk: LayerDisk,
}

/// The processes of a container, and what they hold open.
#[derive(Debug, Default)]
pub(crate) struct ProcessCounts {
    pub(crate) count: u64,
    pub(crate) files: u64,
    pub(crate) sockets: u64,
}

impl ProcessCounts {
    /// Counts by `/proc`. Processes that exit meanwhile are omitted. Blocks.
    pub(crate) fn count(pids: impl IntoIterator<Item = i32>) -> Self {
        let mut all = Self::default();
        for pid in pids {
            all.count += 1;
            let open = fs::read_dir(format!("/proc/{pid}/fd"))
                .into_iter()
                .flatten();
            for file in open.flatten() {
                all.files += 1;
                let target = fs::read_link(file.path()).unwrap_or_default();
                all.sockets += u64::from(target.to_string_lossy().starts_with("socket:"));
            }
        }
        all
    }
}

/// A container's writable layer, and the file system that it is on.
#[derive(Debug, Default)]
pub(crate) struct LayerDisk {
    pub(crate) device: String,
    pub(crate) used: u64,
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
    pub(crate) inodes_free: u64,
}

impl LayerDisk {
    /// The file system that a directory is on. Blocks.
    pub(crate) fn below(directory: &Path) -> Self {
        let usage = rubelet_host::usage::file_system(directory).unwrap_or_default();
        let number = fs::metadata(directory)
            .map(|found| found.dev())
            .unwrap_or_default();
        Self {
            device: block_device(rustix::fs::major(number), rustix::fs::minor(number)),
            used: 0,
            bytes: usage.bytes.capacity,
            inodes: usage.inodes.capacity,
            inodes_free: usage.inodes.available,
        }
    }
}

/// The path of a block device, such as `/dev/vda1`; its numbers where it has no name.
pub(crate) fn block_device(major: u32, minor: u32) -> String {
    let numbers = format!("{major}:{minor}");
    let target = fs::read_link(Path::new("/sys/dev/block").join(&numbers)).unwrap_or_default();
    match target.file_name() {
        Some(name) => format!("/dev/{}", name.to_string_lossy()),
        None => numbers,
    }
}

const fn of_disk(
    name: &'static str,
    help: &'static str,
    of: fn(&ContainerInfo) -> LabelledValues,
) -> MetricDefinition<ContainerInfo> {
    each(name, help, MetricType::Gauge, &["device"], of)
}

fn one(known: &ContainerInfo, number: u64) -> LabelledValues {
    vec![(vec![known.disk.device.clone()], number)]
}

fn cpu(known: &ContainerInfo) -> Option<&Cpu> {
    known.resources.cpu.as_ref()
}

fn bytes(limit: Option<i64>) -> Option<u64> {
    // Without a limit cAdvisor shows 0.
    Some(
        limit
            .and_then(|limit| u64::try_from(limit).ok())
            .unwrap_or(0),
    )
}

/// The definitions.
pub(super) const METRICS: [MetricDefinition<ContainerInfo>; 14] = [
    gauge(
        "container_last_seen",
        "Time of the last measurement, in seconds since 1970",
        |known| Some(known.now / SECOND),
    ),
    gauge(
        "container_start_time_seconds",
        "Start time, in seconds since 1970",
        |known| Some(known.started_at / SECOND),
    ),
    gauge("container_processes", "Processes", |known| {
        Some(known.processes.count)
    }),
    gauge("container_file_descriptors", "Open files", |known| {
        Some(known.processes.files)
    }),
    gauge("container_sockets", "Open sockets", |known| {
        Some(known.processes.sockets)
    }),
    gauge(
        "container_spec_cpu_period",
        "Length of a period of the quota, in microseconds",
        // The kernel's default period.
        |known| Some(cpu(known).and_then(|cpu| cpu.period).unwrap_or(100_000)),
    ),
    gauge(
        "container_spec_cpu_quota",
        "Processor time for each period, in microseconds; nothing without a limit",
        |known| u64::try_from(cpu(known)?.quota?).ok(),
    ),
    gauge(
        "container_spec_cpu_shares",
        "Share of the processors against others",
        |known| Some(cpu(known).and_then(|cpu| cpu.shares).unwrap_or(1024)),
    ),
    gauge(
        "container_spec_memory_swap_limit_bytes",
        "Limit of memory and swap space together, 0 for none",
        |known| bytes(known.resources.memory.and_then(|memory| memory.swap)),
    ),
    gauge(
        "container_spec_memory_reservation_limit_bytes",
        "Soft limit of memory, 0 for none",
        |known| bytes(known.resources.memory.and_then(|memory| memory.reservation)),
    ),
    of_disk(
        "container_fs_usage_bytes",
        "Bytes used by the writable layer",
        |known| one(known, known.disk.used),
    ),
    of_disk(
        "container_fs_limit_bytes",
        "Size of the file system of the root",
        |known| one(known, known.disk.bytes),
    ),
    of_disk(
        "container_fs_inodes_total",
        "Inodes of the file system of the root",
        |known| one(known, known.disk.inodes),
    ),
    of_disk(
        "container_fs_inodes_free",
        "Free inodes of the file system of the root",
        |known| one(known, known.disk.inodes_free),
    ),
];
