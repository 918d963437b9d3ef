//! What is measured: plain numbers, each with the time of its reading. A number that could not be
//! read is missing, never zero.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use rubelet_host::cgroup::{CgroupStats, Pressure};

/// The usage of the node and of its pods.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatsSample {
    /// The machine.
    pub node: NodeSample,
    /// Pods with running containers, ordered by namespace and name.
    pub pods: Vec<PodSample>,
    /// Names of block devices, such as `/dev/vda`, by major and minor number.
    pub devices: BTreeMap<(u32, u32), Box<str>>,
    /// Why numbers are missing, for an operator; empty if none is.
    pub problems: Vec<String>,
}

/// The usage of the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSample {
    /// When it was booted.
    pub booted_at: Option<Timestamp>,
    /// CPU, memory, swap space and disks.
    pub usage: UsageSample,
    /// Network interfaces of the node.
    pub network: Option<NetworkSample>,
    /// Processes and threads.
    pub processes: Option<ProcessSample>,
    /// The file system of the agent's root directory.
    pub fs: Option<FsSample>,
    /// The file system of images.
    pub image_fs: Option<FsSample>,
    /// The file system of the containers' writable layers.
    pub container_fs: Option<FsSample>,
    /// The cgroup of all pods.
    pub pods: Option<Arc<CgroupSample>>,
    /// The node's own services and all pods.
    pub system: Vec<SystemSample>,
    /// Processors that are online.
    pub cores: Option<u64>,
    /// Memory of the machine in bytes.
    pub memory_capacity: Option<u64>,
    /// The block device of the writable layers.
    pub layers_device: Option<Box<str>>,
}

/// The usage of the node's own processes of one kind, or of all pods.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SystemSample {
    /// `kubelet`, `runtime`, `misc` or `pods`.
    pub name: &'static str,
    /// When it was started, if that is known.
    pub started_at: Option<Timestamp>,
    /// CPU, memory and swap space, of its cgroup.
    pub usage: UsageSample,
}

/// The usage of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodSample {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `status.startTime`.
    pub started_at: Timestamp,
    /// CPU, memory, swap space and disks, of its cgroup.
    pub usage: UsageSample,
    /// Its network interfaces.
    pub network: Option<NetworkSample>,
    /// Number of its processes and threads.
    pub processes: Option<u64>,
    /// Its cgroup.
    pub cgroup: Option<Arc<CgroupSample>>,
    /// Its running containers, init and ephemeral ones among them.
    pub containers: Vec<ContainerSample>,
    /// Its volumes, as far as their space was measured.
    pub volumes: Vec<VolumeSample>,
    /// Its local ephemeral storage: writable layers, logs, `/etc/hosts` and the volumes that are removed
    /// with it, and what is left on the file system of the root directory.
    pub ephemeral_storage: Option<FsSample>,
}

/// The usage of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeSample {
    /// Its name in the pod.
    pub name: Arc<str>,
    /// What it uses, and what is left on its file system.
    pub fs: FsSample,
    /// Whether it takes local ephemeral storage.
    pub is_ephemeral: bool,
}

/// The usage of a container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerSample {
    /// Its name in the pod.
    pub name: Arc<str>,
    /// The runtime's identifier.
    pub id: Arc<str>,
    /// Start time of its program.
    pub started_at: Timestamp,
    /// CPU, memory, swap space and disks.
    pub usage: UsageSample,
    /// Its writable layer, and what is left on the file system of it.
    pub rootfs: Option<FsSample>,
    /// Its log files, and what is left on the file system of them.
    pub logs: Option<FsSample>,
    /// The name of its image.
    pub image: Arc<str>,
    /// Its share of the processors.
    pub cpu_spec: CpuSpec,
    /// Its cgroup.
    pub cgroup: Option<Arc<CgroupSample>>,
}

/// The share of the processors that a container has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuSpec {
    /// `cpu.shares`: 1024 for a core.
    pub shares: u64,
    /// Microseconds of CPU time in each period; `None` without a limit.
    pub quota_us: Option<u64>,
    /// Length of a period in microseconds.
    pub period_us: u64,
}

/// The statistics of a cgroup.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CgroupSample {
    /// Its path below the root of each hierarchy.
    pub path: Box<str>,
    /// Time of the reading.
    pub at: Timestamp,
    /// The numbers.
    pub stats: CgroupStats,
}

/// CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuSample {
    /// Time of the reading.
    pub at: Timestamp,
    /// CPU time since the start, in nanoseconds.
    pub usage_ns: u64,
    /// Nanoseconds of CPU time for each second since the reading before; `None` at the first one.
    pub nano_cores: Option<u64>,
    /// Time in which processes waited for a processor.
    pub pressure: Option<Pressure>,
}

/// Memory in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MemorySample {
    /// Time of the reading.
    pub at: Timestamp,
    /// All memory that is charged, including the page cache.
    pub usage: Option<u64>,
    /// The usage without the inactive page cache.
    pub working_set: Option<u64>,
    /// Anonymous memory.
    pub rss: Option<u64>,
    /// What is left to the limit; `None` without a limit.
    pub available: Option<u64>,
    /// Page faults.
    pub page_faults: Option<u64>,
    /// Page faults that had to wait for a disk.
    pub major_page_faults: Option<u64>,
    /// Time in which processes waited for memory.
    pub pressure: Option<Pressure>,
}

/// Swap space in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwapSample {
    /// Time of the reading.
    pub at: Timestamp,
    /// In use.
    pub usage: Option<u64>,
    /// What is left to the limit; `None` without a limit.
    pub available: Option<u64>,
}

/// Time in which processes waited for disks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IoSample {
    /// Time of the reading.
    pub at: Timestamp,
    /// The time.
    pub pressure: Pressure,
}

/// Processes and threads of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// Time of the reading.
    pub at: Timestamp,
    /// Their number.
    pub running: u64,
    /// The limit.
    pub max: u64,
}

/// Network interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkSample {
    /// Time of the reading.
    pub at: Timestamp,
    /// The default interface first, if there is one.
    pub interfaces: Vec<InterfaceSample>,
    /// Whether the first one is the default interface.
    pub has_default: bool,
}

/// Counters of a network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceSample {
    /// Its name.
    pub name: Box<str>,
    /// Bytes received.
    pub rx_bytes: Option<u64>,
    /// Packets received. The CRI does not have those, nor the dropped ones.
    pub rx_packets: Option<u64>,
    /// Errors of receiving.
    pub rx_errors: Option<u64>,
    /// Packets that came and were dropped.
    pub rx_dropped: Option<u64>,
    /// Bytes sent.
    pub tx_bytes: Option<u64>,
    /// Packets sent.
    pub tx_packets: Option<u64>,
    /// Errors of sending.
    pub tx_errors: Option<u64>,
    /// Packets that were to be sent and were dropped.
    pub tx_dropped: Option<u64>,
}

/// A file system, or a part of it: then `used` is that of the part, and the capacity that of the
/// whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FsSample {
    /// Time of the reading.
    pub at: Timestamp,
    /// Bytes that are free for users other than root.
    pub available: Option<u64>,
    /// Bytes in total.
    pub capacity: Option<u64>,
    /// Bytes in use.
    pub used: Option<u64>,
    /// Free inodes.
    pub inodes_free: Option<u64>,
    /// Inodes in total.
    pub inodes: Option<u64>,
    /// Inodes in use.
    pub inodes_used: Option<u64>,
}

impl FsSample {
    /// A part of this file system that uses so much of it.
    pub(crate) fn part(self, used: Option<u64>, inodes_used: Option<u64>) -> Self {
        Self {
            used,
            inodes_used,
            ..self
        }
    }
}

/// The usage of one object.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageSample {
    /// CPU time.
    pub cpu: Option<CpuSample>,
    /// Memory.
    pub memory: Option<MemorySample>,
    /// Swap space.
    pub swap: Option<SwapSample>,
    /// Waiting for disks.
    pub io: Option<IoSample>,
}

impl UsageSample {
    /// These numbers, and those of `other` where one is missing.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.or(other.cpu),
            memory: self.memory.or(other.memory),
            swap: self.swap.or(other.swap),
            io: self.io.or(other.io),
        }
    }

    /// Whether the numbers that every runtime and every kernel has are there.
    pub(crate) fn is_complete(&self) -> bool {
        self.cpu.is_some() && self.memory.is_some()
    }
}
