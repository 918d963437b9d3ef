//! The resources that a pod uses.

use rubelet_api::{pod::Pod, resources::Bytes};

use super::layout::DiskParts;

/// Space on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskUsage {
    /// Bytes.
    pub bytes: Bytes,
    /// Inodes.
    pub inodes: u64,
}

impl DiskUsage {
    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }
}

/// The usage of one container. `None`: not measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContainerUsage {
    /// Name of the container.
    pub name: Box<str>,
    /// Working set in bytes.
    pub memory: Option<Bytes>,
    /// Its writable layer.
    pub writable_layer: Option<DiskUsage>,
    /// Its logs.
    pub logs: Option<DiskUsage>,
}

/// The usage of one volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeUsage {
    /// Name of the volume.
    pub name: Box<str>,
    /// What it uses.
    pub usage: DiskUsage,
}

/// The usage of one pod. A pod that runs nothing uses nothing, which is known without measuring.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodUsage {
    /// Working set of the whole pod in bytes.
    pub memory: Bytes,
    /// Processes and threads.
    pub pids: u64,
    /// Volumes on the node's file system that are removed with the pod.
    pub volumes: Vec<VolumeUsage>,
    /// Other files of the pod, such as its `/etc/hosts`.
    pub files: DiskUsage,
    /// Whether its files are too many to be counted: it uses at least this.
    pub is_partial: bool,
    /// Its containers, those with a record in the runtime.
    pub containers: Vec<ContainerUsage>,
}

impl PodUsage {
    /// All that it uses on disks, wherever they are.
    pub(crate) fn disk_total(&self) -> DiskUsage {
        self.disk(DiskParts {
            writable_layers: true,
            logs_and_volumes: true,
        })
    }

    /// The parts of its disk usage that count, added up.
    pub(crate) fn disk(&self, parts: DiskParts) -> DiskUsage {
        let of = |counts: bool, usage: Option<DiskUsage>| usage.filter(|_| counts);
        let volumes = self.volumes.iter().map(|volume| volume.usage);
        let files = volumes
            .chain([self.files])
            .map(|usage| of(parts.logs_and_volumes, Some(usage)));
        let containers = self.containers.iter().flat_map(|container| {
            [
                of(parts.writable_layers, container.writable_layer),
                of(parts.logs_and_volumes, container.logs),
            ]
        });
        containers
            .chain(files)
            .flatten()
            .fold(DiskUsage::default(), DiskUsage::plus)
    }
}

/// A pod that may be evicted.
#[derive(Debug, Clone, Copy)]
pub struct EvictionCandidate<'a> {
    /// The pod, as defined.
    pub pod: &'a Pod,
    /// Its usage; `None` if it could not be measured.
    pub usage: Option<&'a PodUsage>,
    /// True if it is being terminated already, for whatever reason.
    pub is_leaving: bool,
}
