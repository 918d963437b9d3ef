//! Usage of a cgroup, in one form for both versions.

mod pressure;
mod read;
mod v1;
mod v2;

use std::{io, path::PathBuf};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};

use super::CgroupFs;

pub use pressure::{Pressure, PressureLine};
pub use read::StatsReader;

/// Why the usage can't be read.
#[derive(Debug, thiserror::Error)]
pub enum StatsError {
    /// A file can't be read; NotFound when the cgroup is gone.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file or directory.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A required controller is missing.
    #[error(
        "the cgroup {path} has no numbers of the cgroup controller `{controller}`: it is not mounted"
    )]
    NoController {
        /// The cgroup.
        path: CgroupPath,
        /// The controller.
        controller: &'static str,
    },
}

impl StatsError {
    /// Whether the cgroup is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Read { source, .. } if super::is_gone(source))
    }
}

/// Usage of a cgroup. A group of numbers is `None` if its controller is missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CgroupStats {
    /// CPU time.
    pub cpu: Option<CpuStats>,
    /// Memory.
    pub memory: Option<MemoryStats>,
    /// Swap space; `None` also without swap accounting.
    pub swap: Option<SwapStats>,
    /// Processes and threads.
    pub pids: Option<PidsStats>,
    /// Huge pages, one for each page size.
    pub hugetlb: Vec<HugetlbStats>,
    /// Block devices.
    pub io: Vec<IoStats>,
    /// Pressure stall information; version 2 only, if the kernel has it.
    pub psi: PsiStats,
}

/// CPU time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuStats {
    /// Total.
    pub usage_ns: u64,
    /// In user space.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Elapsed periods of the quota.
    pub periods: u64,
    /// Throttled periods.
    pub throttled_periods: u64,
    /// Total time for which processes were throttled.
    pub throttled_ns: u64,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// All memory that is charged to the cgroup, including the page cache.
    pub usage: u64,
    /// The working set: the usage without the inactive page cache.
    pub working_set: u64,
    /// Limit; `None` if there is none.
    pub limit: Option<u64>,
    /// Anonymous memory.
    pub rss: u64,
    /// Page cache.
    pub cache: u64,
    /// Files mapped into memory.
    pub mapped_file: u64,
    /// Peak usage, if the kernel reports it (version 2: since Linux 5.19).
    pub max_usage: Option<u64>,
    /// Kernel memory charged to the cgroup.
    pub kernel: u64,
    /// Page faults so far.
    pub page_faults: u64,
    /// Page faults that had to wait for a disk.
    pub major_page_faults: u64,
    /// Number of times that the limit was hit.
    pub limit_hits: u64,
    /// Processes that the OOM killer has killed.
    pub oom_kills: u64,
}

impl MemoryStats {
    /// Available memory; `None` without a limit.
    #[must_use]
    pub fn available(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.working_set))
    }
}

/// Swap space, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwapStats {
    /// In use.
    pub usage: u64,
    /// Limit of swap space alone; `None` if there is none.
    pub limit: Option<u64>,
}

/// Processes and threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PidsStats {
    /// Current count.
    pub current: u64,
    /// Limit; `None` if there is none.
    pub limit: Option<u64>,
}

/// Huge pages of one size, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HugetlbStats {
    /// Page size in the kernel's format: `2MB`.
    pub page_size: String,
    /// In use.
    pub usage: u64,
    /// Reserved, if the kernel reports it (since Linux 5.7).
    pub reserved: Option<u64>,
    /// Number of times that the limit was hit.
    pub limit_hits: u64,
}

/// I/O of one block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoStats {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Read operations.
    pub reads: u64,
    /// Write operations.
    pub writes: u64,
}

/// Pressure stall information of three resources.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PsiStats {
    /// Waiting for a processor.
    pub cpu: Option<Pressure>,
    /// Waiting for memory.
    pub memory: Option<Pressure>,
    /// Waiting for disks.
    pub io: Option<Pressure>,
}

/// Which numbers of a cgroup are read. Each one costs the opening of a file or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatsScope {
    /// CPU time, memory, swap space and pressure. Of the others those are 0 or `None` that no file of these has: parts
    /// of the CPU time, peaks and events.
    Usage,
    /// Also the number of processes and threads.
    UsageAndPids,
    /// All but those of huge pages.
    Counters,
    /// All, from some 25 files.
    All,
}

impl CgroupFs {
    /// Reads the numbers of one cgroup, including its descendants.
    ///
    /// # Errors
    /// The cgroup does not exist, or a file of it can't be read.
    pub fn stats(&self, path: &CgroupPath, scope: StatsScope) -> Result<CgroupStats, StatsError> {
        self.stats_reader().read(path, scope)
    }

    /// Reads the numbers of many cgroups.
    #[must_use]
    pub fn stats_reader(&self) -> StatsReader<'_> {
        StatsReader::new(self)
    }

    /// Memory in the root cgroup of version 1, which leaves out what the kernel needs for itself.
    /// `None` for version 2, whose root has no such numbers, and without the controller.
    #[must_use]
    pub fn root_memory(&self) -> Option<MemoryStats> {
        match self.layout {
            CgroupLayout::V2 => None,
            CgroupLayout::V1 | CgroupLayout::Hybrid => v1::root_memory(self),
        }
    }
}

impl StatsReader<'_> {
    /// Reads the numbers of a cgroup, including its descendants.
    ///
    /// # Errors
    /// The cgroup does not exist, or a file of it can't be read.
    pub fn read(
        &mut self,
        path: &CgroupPath,
        scope: StatsScope,
    ) -> Result<CgroupStats, StatsError> {
        self.enter(path);
        match self.fs.layout {
            CgroupLayout::V2 => v2::stats(self, path, scope),
            CgroupLayout::V1 | CgroupLayout::Hybrid => v1::stats(self, path, scope),
        }
    }
}

#[cfg(test)]
mod tests;
