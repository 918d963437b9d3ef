//! The limits of a cgroup, read from the files of version 1 and 2 alike.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};

use crate::cleanup::cgroups;

/// The value of version 2 for "no limit".
const MAX: &str = "max";
/// Version 1 has no word for "no limit" of memory, but the largest multiple of a page: more than any machine has.
const UNLIMITED_MEMORY: u64 = 1 << 60;
/// The least and the most shares of a cgroup.
const SHARES: [u64; 2] = [2, 262_144];

/// What limits the processes of a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Its part of the CPU time, beside those of other cgroups.
    pub share: CpuShare,
    /// CPU time of all CPUs together; `None` without a limit.
    pub quota: Option<CpuQuota>,
    /// Memory in bytes; `None` without a limit.
    pub memory: Option<u64>,
    /// Processes and threads; `None` without a limit.
    pub pids: Option<u64>,
}

/// So much CPU time in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuQuota {
    /// The CPU time in microseconds.
    pub quota: u64,
    /// The period in microseconds.
    pub period: u64,
}

/// A part of the CPU time, in the unit of the cgroup version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuShare {
    /// `cpu.shares` of version 1: 1024 for each requested CPU.
    Shares(u64),
    /// `cpu.weight` of version 2.
    Weight(u64),
}

impl CpuShare {
    /// Whether it is that of a pod, or of the cgroups above, with so many shares.
    #[must_use]
    pub fn is_of_pod(self, shares: u64) -> bool {
        match self {
            Self::Shares(found) => found == shares,
            Self::Weight(found) => found == linear(shares),
        }
    }

    /// Whether it is that of a container with so many shares. Their weights are by the conversion that kubelets use for
    /// pods, or by a curve, which OCI runtimes use since 2025.
    #[must_use]
    pub fn is_of_container(self, shares: u64) -> bool {
        self.is_of_pod(shares) || self == Self::Weight(curved(shares))
    }

    /// Whether it is at least that of a pod with so many shares.
    #[must_use]
    pub fn is_at_least(self, shares: u64) -> bool {
        match self {
            Self::Shares(found) => found >= shares,
            Self::Weight(found) => found >= linear(shares),
        }
    }
}

impl fmt::Display for CpuShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shares(number) => write!(f, "{number} shares"),
            Self::Weight(number) => write!(f, "weight {number}"),
        }
    }
}

impl CgroupLimits {
    /// Those of the cgroup with this path below that of the instance `tag`, such as `kubepods/besteffort`.
    ///
    /// # Errors
    /// There is no such cgroup, or a file has no number.
    pub fn of(tag: &str, path: &str) -> Result<Self> {
        let read = |name| text_of(tag, path, name);
        let pids = limit(&read("pids.max")?)?;
        if let Ok(weight) = read("cpu.weight") {
            return Ok(Self {
                share: CpuShare::Weight(weight.parse()?),
                quota: quota_of_version_2(&read("cpu.max")?)?,
                memory: limit(&read("memory.max")?)?,
                pids,
            });
        }
        let quota: i64 = read("cpu.cfs_quota_us")?.parse()?;
        let period = read("cpu.cfs_period_us")?.parse()?;
        let quota = u64::try_from(quota).ok();
        let memory: u64 = read("memory.limit_in_bytes")?.parse()?;
        Ok(Self {
            share: CpuShare::Shares(read("cpu.shares")?.parse()?),
            quota: quota.map(|quota| CpuQuota { quota, period }),
            memory: Some(memory).filter(|bytes| *bytes < UNLIMITED_MEMORY),
            pids,
        })
    }
}

/// The file with the memory limit of a cgroup, as for [`CgroupLimits::of`].
///
/// # Errors
/// There is no such cgroup.
pub fn memory_limit_file(tag: &str, path: &str) -> Result<PathBuf> {
    file(tag, path, "memory.max").or_else(|_| file(tag, path, "memory.limit_in_bytes"))
}

/// The memory that a cgroup uses, in bytes, as for [`CgroupLimits::of`].
///
/// # Errors
/// There is no such cgroup.
pub fn memory_usage(tag: &str, path: &str) -> Result<u64> {
    let version_2 = text_of(tag, path, "memory.current");
    let text = version_2.or_else(|_| text_of(tag, path, "memory.usage_in_bytes"))?;
    Ok(text.parse()?)
}

/// The file in the hierarchy that has it.
fn file(tag: &str, path: &str, name: &str) -> Result<PathBuf> {
    let found = cgroups::at(tag, path)?.into_iter();
    let mut files = found.map(|directory| directory.join(name));
    let file = files.find(|file| file.exists());
    file.with_context(|| format!("no cgroup {path} has a file {name}"))
}

fn text_of(tag: &str, path: &str, name: &str) -> Result<String> {
    let file = file(tag, path, name)?;
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// The text of `cpu.max`: the quota, and the period.
fn quota_of_version_2(text: &str) -> Result<Option<CpuQuota>> {
    let (quota, period) = text
        .split_once(' ')
        .with_context(|| format!("`{text}` is not a quota"))?;
    let Some(quota) = limit(quota)? else {
        return Ok(None);
    };
    let period = period.parse()?;
    Ok(Some(CpuQuota { quota, period }))
}

fn limit(text: &str) -> Result<Option<u64>> {
    if text == MAX {
        return Ok(None);
    }
    let number = u64::from_str(text).with_context(|| format!("`{text}` is not a limit"))?;
    Ok(Some(number))
}

/// The weight that kubelets give to pods.
fn linear(shares: u64) -> u64 {
    let [least, most] = SHARES;
    1 + (shares.clamp(least, most) - least) * 9999 / (most - least)
}

/// The weight that OCI runtimes give to containers since 2025: it has the default for the default.
fn curved(shares: u64) -> u64 {
    let [least, most] = SHARES;
    if shares <= least {
        return 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
    let x = (shares.min(most) as f64).log2();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 10000"
    )]
    let weight = 10f64.powf((x * x + 125.0 * x) / 612.0 - 7.0 / 34.0).ceil() as u64;
    weight.min(10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_recognized_by_their_weight() {
        for (shares, of_pod, of_container) in [
            (2, 1, 1),
            (102, 4, 17),
            (512, 20, 59),
            (1024, 39, 100),
            (262_144, 10_000, 10_000),
        ] {
            let [pod, container] = [of_pod, of_container].map(CpuShare::Weight);
            assert!(pod.is_of_pod(shares), "{shares}");
            assert!(pod.is_of_container(shares), "{shares}");
            assert!(container.is_of_container(shares), "{shares}");
            assert_eq!(container.is_of_pod(shares), of_pod == of_container);
            assert!(!CpuShare::Weight(of_container + 1).is_of_container(shares));
            assert!(CpuShare::Shares(shares).is_of_pod(shares));
        }
        assert!(!CpuShare::Weight(3).is_at_least(102));
        assert!(CpuShare::Weight(4).is_at_least(102));
    }

    #[test]
    fn no_limit_is_none() -> Result<()> {
        assert_eq!(limit("max")?, None);
        assert_eq!(limit("40")?, Some(40));
        assert!(limit("").is_err());
        assert_eq!(quota_of_version_2("max 100000")?, None);
        let quota = CpuQuota {
            quota: 50_000,
            period: 100_000,
        };
        assert_eq!(quota_of_version_2("50000 100000")?, Some(quota));
        Ok(())
    }
}
