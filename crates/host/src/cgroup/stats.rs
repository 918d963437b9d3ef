//! What a cgroup uses, in one form for both versions.

mod pressure;
mod read;
mod v1;
mod v2;

use std::{io, path::PathBuf};

use rubelet_base::cgroup::CgroupPath;

use super::{CgroupFs, CgroupLayout};

pub use pressure::{Pressure, PressureLine};

/// Why a cgroup can't be measured.
#[derive(Debug, thiserror::Error)]
pub enum StatsError {
    /// A file can't be read; NotFound when the cgroup is gone.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file or folder.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A controller is missing that the question is about.
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
    /// Whether the cgroup isn't there any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Read { source, .. } if super::is_gone(source))
    }
}

/// What a cgroup uses. A group of numbers is `None` where its controller is missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CgroupStats {
    /// Processor time.
    pub cpu: Option<CpuStats>,
    /// Memory.
    pub memory: Option<MemoryStats>,
    /// Swap space; `None` also where the kernel doesn't account it.
    pub swap: Option<SwapStats>,
    /// Processes and threads.
    pub pids: Option<PidsStats>,
    /// Huge pages, one for each page size.
    pub hugetlb: Vec<HugetlbStats>,
    /// Block devices.
    pub io: Vec<IoStats>,
    /// Pressure stall information; version 2 only, where the kernel has it.
    pub psi: PsiStats,
}

/// Processor time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuStats {
    /// All.
    pub usage_ns: u64,
    /// In user space.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Periods of the quota that passed.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled_periods: u64,
    /// How long processes had to wait for the next period.
    pub throttled_ns: u64,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// All that is charged to the cgroup, the page cache too.
    pub usage: u64,
    /// What can't be taken back easily: the usage without the part of the page cache that was not
    /// touched lately.
    pub working_set: u64,
    /// Limit; `None` if there is none.
    pub limit: Option<u64>,
    /// Anonymous memory.
    pub rss: u64,
    /// Page cache.
    pub cache: u64,
    /// Files mapped into memory.
    pub mapped_file: u64,
    /// Largest usage so far, where the kernel says (version 2: from Linux 5.19).
    pub max_usage: Option<u64>,
    /// Memory of the kernel itself on behalf of the cgroup.
    pub kernel: u64,
    /// Page faults so far.
    pub page_faults: u64,
    /// Page faults that had to wait for a disk.
    pub major_page_faults: u64,
    /// How often the limit was hit.
    pub limit_hits: u64,
    /// Processes that the OOM killer took.
    pub oom_kills: u64,
}

impl MemoryStats {
    /// What can still be used; `None` without a limit.
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
    /// How many there are.
    pub current: u64,
    /// Limit; `None` if there is none.
    pub limit: Option<u64>,
}

/// Huge pages of one size, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HugetlbStats {
    /// Size of a page as the kernel writes it: `2MB`.
    pub page_size: String,
    /// In use.
    pub usage: u64,
    /// Reserved, where the kernel tells (from Linux 5.7).
    pub reserved: Option<u64>,
    /// How often the limit was hit.
    pub limit_hits: u64,
}

/// What was read from and written to one block device.
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

impl CgroupFs {
    /// Measures a cgroup, with all that are within it.
    ///
    /// # Errors
    /// The cgroup isn't there, or a file of it can't be read.
    pub fn stats(&self, path: &CgroupPath) -> Result<CgroupStats, StatsError> {
        match self.layout {
            CgroupLayout::V2 => v2::stats(self, path),
            CgroupLayout::V1 | CgroupLayout::Hybrid => v1::stats(self, path),
        }
    }
}

#[cfg(test)]
mod tests;
