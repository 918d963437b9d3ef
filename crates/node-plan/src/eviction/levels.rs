//! The measured levels of memory, file systems and processes.

use super::EvictionSignal;

/// The level of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceLevel {
    /// The available amount.
    pub available: u64,
    /// The capacity.
    pub capacity: u64,
}

/// One file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSystem {
    /// Bytes.
    pub bytes: ResourceLevel,
    /// Inodes; a capacity of 0 if the file system does not count them.
    pub inodes: ResourceLevel,
}

/// The measured levels. `None`: could not be measured, which neither causes nor ends pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceLevels {
    /// Memory: everything except the working set is available.
    pub memory: Option<ResourceLevel>,
    /// Memory of the pods' cgroup: the capacity is its limit. `None` without a limit.
    pub allocatable_memory: Option<ResourceLevel>,
    /// The file system of volumes and logs.
    pub nodefs: Option<FileSystem>,
    /// The file system of images.
    pub imagefs: Option<FileSystem>,
    /// The file system of writable layers; `None` if they are on that of images.
    pub containerfs: Option<FileSystem>,
    /// Processes and threads.
    pub pids: Option<ResourceLevel>,
}

impl ResourceLevels {
    /// The level of one signal.
    #[must_use]
    pub fn of(&self, signal: EvictionSignal) -> Option<ResourceLevel> {
        let inodes = |fs: Option<FileSystem>| {
            let inodes = fs?.inodes;
            // Btrfs and others create inodes as they need them: there is no shortage.
            (inodes.capacity > 0).then_some(inodes)
        };
        let bytes = |fs: Option<FileSystem>| Some(fs?.bytes);
        match signal {
            EvictionSignal::MemoryAvailable => self.memory,
            EvictionSignal::AllocatableMemoryAvailable => self.allocatable_memory,
            EvictionSignal::NodefsAvailable => bytes(self.nodefs),
            EvictionSignal::NodefsInodesFree => inodes(self.nodefs),
            EvictionSignal::ImagefsAvailable => bytes(self.imagefs),
            EvictionSignal::ImagefsInodesFree => inodes(self.imagefs),
            EvictionSignal::ContainerfsAvailable => bytes(self.containerfs),
            EvictionSignal::ContainerfsInodesFree => inodes(self.containerfs),
            EvictionSignal::PidAvailable => self.pids,
        }
    }
}
