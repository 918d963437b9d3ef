//! The signals that eviction thresholds are about, and what follows from each.

/// A signal of an eviction threshold, in the order in which shortages are handled: memory first, as
/// a node without memory cannot do anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionSignal {
    /// `memory.available`: memory that is free or can be reclaimed at once.
    MemoryAvailable,
    /// `allocatableMemory.available`: what the pods together may still use, if their cgroup is
    /// limited.
    AllocatableMemoryAvailable,
    /// `nodefs.available`: the file system of volumes and logs.
    NodefsAvailable,
    /// `nodefs.inodesFree`.
    NodefsInodesFree,
    /// `imagefs.available`: the file system of the runtime's images.
    ImagefsAvailable,
    /// `imagefs.inodesFree`.
    ImagefsInodesFree,
    /// `containerfs.available`: the file system of writable layers, where it is not that of images.
    ContainerfsAvailable,
    /// `containerfs.inodesFree`.
    ContainerfsInodesFree,
    /// `pid.available`: processes and threads.
    PidAvailable,
}

/// A resource that pods are evicted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StarvedResource {
    /// Memory.
    Memory,
    /// Bytes of a file system.
    EphemeralStorage,
    /// Inodes of a file system.
    Inodes,
    /// Processes and threads.
    Pids,
}

impl StarvedResource {
    /// Its name in messages and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::EphemeralStorage => "ephemeral-storage",
            Self::Inodes => "inodes",
            Self::Pids => "pids",
        }
    }
}

/// The condition of the node that a shortage sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PressureKind {
    Memory,
    Disk,
    Pid,
}

impl EvictionSignal {
    const ALL: [(&'static str, Self); 9] = [
        ("memory.available", Self::MemoryAvailable),
        (
            "allocatableMemory.available",
            Self::AllocatableMemoryAvailable,
        ),
        ("nodefs.available", Self::NodefsAvailable),
        ("nodefs.inodesFree", Self::NodefsInodesFree),
        ("imagefs.available", Self::ImagefsAvailable),
        ("imagefs.inodesFree", Self::ImagefsInodesFree),
        ("containerfs.available", Self::ContainerfsAvailable),
        ("containerfs.inodesFree", Self::ContainerfsInodesFree),
        ("pid.available", Self::PidAvailable),
    ];

    /// The signal of a name in the configuration.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let (_, signal) = Self::ALL.iter().find(|(known, _)| *known == name)?;
        Some(*signal)
    }

    /// Its name in the configuration and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, known)| *known == self);
        found.map_or("", |(name, _)| name)
    }

    /// The signal whose thresholds apply to this one, whatever is configured for it: writable layers
    /// on a file system of their own have those of the node (kubelet:
    /// `UpdateContainerFsThresholds`).
    pub(crate) fn thresholds_of(self) -> Option<Self> {
        match self {
            Self::ContainerfsAvailable => Some(Self::NodefsAvailable),
            Self::ContainerfsInodesFree => Some(Self::NodefsInodesFree),
            _ => None,
        }
    }

    /// The resource that is short.
    #[must_use]
    pub fn resource(self) -> StarvedResource {
        match self {
            Self::MemoryAvailable | Self::AllocatableMemoryAvailable => StarvedResource::Memory,
            Self::NodefsAvailable | Self::ImagefsAvailable | Self::ContainerfsAvailable => {
                StarvedResource::EphemeralStorage
            }
            Self::NodefsInodesFree | Self::ImagefsInodesFree | Self::ContainerfsInodesFree => {
                StarvedResource::Inodes
            }
            Self::PidAvailable => StarvedResource::Pids,
        }
    }

    pub(crate) fn condition(self) -> PressureKind {
        match self.resource() {
            StarvedResource::Memory => PressureKind::Memory,
            StarvedResource::EphemeralStorage | StarvedResource::Inodes => PressureKind::Disk,
            StarvedResource::Pids => PressureKind::Pid,
        }
    }
}
