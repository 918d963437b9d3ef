//! The limits of a cgroup. A field that is `None` or empty is not written.

use crate::cpu::{self, CpuQuota, CpuShare};

/// The values of one cgroup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupValues {
    /// CPU weight under contention.
    pub cpu: Option<CpuShare>,
    /// Upper limit of CPU time.
    pub cpu_quota: Option<CpuQuota>,
    /// Upper limit of memory, in bytes.
    pub memory_limit: Option<u64>,
    /// Memory in bytes that the kernel never reclaims. Not written with version 1.
    pub memory_min: Option<u64>,
    /// Memory in bytes that the kernel reclaims only if nothing else is left. Not written with version
    /// 1.
    pub memory_low: Option<u64>,
    /// Upper limit of the number of processes and threads.
    pub pids_limit: Option<u64>,
    /// Upper limits of huge pages, one for each page size of the machine.
    pub hugepages: Vec<HugepageLimit>,
}

impl CgroupValues {
    /// These values, with missing ones from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.or(other.cpu),
            cpu_quota: self.cpu_quota.or(other.cpu_quota),
            memory_limit: self.memory_limit.or(other.memory_limit),
            memory_min: self.memory_min.or(other.memory_min),
            memory_low: self.memory_low.or(other.memory_low),
            pids_limit: self.pids_limit.or(other.pids_limit),
            hugepages: if self.hugepages.is_empty() {
                other.hugepages
            } else {
                self.hugepages
            },
        }
    }

    /// The values that systemd sets when it is given these: see [`cpu::systemd_quota`].
    #[must_use]
    pub fn under_systemd(self) -> Self {
        Self {
            cpu_quota: self.cpu_quota.map(cpu::systemd_quota),
            ..self
        }
    }
}

/// A limit for one size of huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HugepageLimit {
    /// Size of a page in bytes.
    pub page_size: u64,
    /// Limit in bytes.
    pub limit: u64,
}

impl HugepageLimit {
    /// A limit that no machine reaches; used by the tiers of the tree.
    pub const UNBOUNDED: u64 = 1 << 62;
}

/// A page size as the kernel writes it in file names and the CRI expects it: `2MB`, `1GB`.
#[must_use]
pub fn page_size_name(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KB", "MB", "GB", "TB", "PB"];
    let mut size = bytes;
    let mut unit = 0;
    while size > 0 && size.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        size /= 1024;
        unit += 1;
    }
    format!("{size}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_come_from_the_other_ones() {
        let own = CgroupValues {
            memory_limit: Some(1),
            pids_limit: Some(2),
            ..CgroupValues::default()
        };
        let other = CgroupValues {
            cpu_quota: Some(cpu::quota(5, 100_000, true)),
            memory_limit: Some(3),
            ..CgroupValues::default()
        };
        let both = own.clone().or(other.clone());
        assert_eq!((both.memory_limit, both.pids_limit), (Some(1), Some(2)));
        assert_eq!(both.cpu_quota, other.cpu_quota);
        assert_eq!(own.clone().or(CgroupValues::default()), own);
        assert_eq!(CgroupValues::default().or(own.clone()), own);
    }

    #[test]
    fn systemd_changes_only_the_quota() {
        let values = CgroupValues {
            cpu: Some(cpu::share(505)),
            cpu_quota: Some(cpu::quota(505, 100_000, true)),
            memory_limit: Some(4096),
            ..CgroupValues::default()
        };
        let expected = CgroupValues {
            cpu_quota: Some(cpu::quota(510, 100_000, true)),
            ..values.clone()
        };
        assert_eq!(values.under_systemd(), expected);
    }

    #[test]
    fn page_sizes_are_named_as_the_kernel_names_them() {
        for (bytes, name) in [
            (65536, "64KB"),
            (2 << 20, "2MB"),
            (512 << 20, "512MB"),
            (1 << 30, "1GB"),
            (0, "0B"),
        ] {
            assert_eq!(page_size_name(bytes), name);
        }
    }
}
