//! Limits of a container: from the CRI's form, and back for statuses.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rubelet_cgroup_plan::{
    CgroupLayout,
    cpu::{MAX_SHARES, MIN_SHARES},
};
use rubelet_cri::v1;
use rubelet_oci::{Cpu, HugepageLimit, LinuxResources, Memory};

use crate::{Refusal, host::HostFacts};

/// Files of a version 2 cgroup that move or end processes, or change its shape: not limits.
const NOT_LIMITS: [&str; 7] = [
    "cgroup.procs",
    "cgroup.threads",
    "cgroup.subtree_control",
    "cgroup.type",
    "cgroup.kill",
    "cgroup.freeze",
    "cgroup.max.depth",
];

/// The limits of a new container. Device rules are not among them.
///
/// # Errors
/// A value that no cgroup takes, or one for a controller that the host does not have.
pub fn create(
    wanted: &v1::LinuxContainerResources,
    host: &HostFacts,
) -> Result<LinuxResources, Refusal> {
    merge(&LinuxResources::default(), wanted, host)
}

/// The limits in force, merged with those of an update. A field of the update that is 0 or empty is
/// left as it is.
///
/// # Errors
/// As [`create`].
pub fn merge(
    in_force: &LinuxResources,
    update: &v1::LinuxContainerResources,
    host: &HostFacts,
) -> Result<LinuxResources, Refusal> {
    let mut merged = in_force.clone();
    cpu(&mut merged, update)?;
    memory(&mut merged, update, host)?;
    for limit in &update.hugepage_limits {
        hugepages(&mut merged.hugepage_limits, limit, host)?;
    }
    unified(&mut merged.unified, &update.unified, host)?;
    Ok(merged)
}

fn cpu(merged: &mut LinuxResources, update: &v1::LinuxContainerResources) -> Result<(), Refusal> {
    let mut cpu = merged.cpu.clone().unwrap_or_default();
    if update.cpu_period != 0 {
        let period = u64::try_from(update.cpu_period)
            .ok()
            .filter(|period| (1000..=1_000_000).contains(period));
        cpu.period = Some(period.ok_or_else(|| {
            refuse(
                "cpu_period",
                format!(
                    "{} is not from 1000 to 1000000 microseconds",
                    update.cpu_period
                ),
            )
        })?);
    }
    if update.cpu_quota != 0 {
        if update.cpu_quota < -1 {
            return Err(refuse(
                "cpu_quota",
                format!("{} is no time; -1 lifts the limit", update.cpu_quota),
            ));
        }
        cpu.quota = Some(update.cpu_quota);
    }
    if update.cpu_shares != 0 {
        let shares = u64::try_from(update.cpu_shares)
            .map_err(|_| refuse("cpu_shares", format!("{} is no share", update.cpu_shares)))?;
        cpu.shares = Some(shares.clamp(MIN_SHARES, MAX_SHARES));
    }
    for (field, wanted, kept) in [
        ("cpuset_cpus", &update.cpuset_cpus, &mut cpu.cpus),
        ("cpuset_mems", &update.cpuset_mems, &mut cpu.mems),
    ] {
        if !wanted.is_empty() {
            if !is_list(wanted) {
                return Err(refuse(
                    field,
                    format!("{wanted:?} is no list of numbers such as 0-3,8"),
                ));
            }
            kept.clone_from(wanted);
        }
    }
    merged.cpu = Some(cpu).filter(|cpu| *cpu != Cpu::default());
    Ok(())
}

fn is_list(text: &str) -> bool {
    text.split(',').all(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) => first <= last,
            _ => false,
        }
    })
}

fn memory(
    merged: &mut LinuxResources,
    update: &v1::LinuxContainerResources,
    host: &HostFacts,
) -> Result<(), Refusal> {
    let (limit, swap) = (
        update.memory_limit_in_bytes,
        update.memory_swap_limit_in_bytes,
    );
    let mut memory = merged.memory.unwrap_or_default();
    for (field, value) in [
        ("memory_limit_in_bytes", limit),
        ("memory_swap_limit_in_bytes", swap),
    ] {
        if value < -1 {
            return Err(refuse(
                field,
                format!("{value} is no amount of memory; -1 lifts the limit"),
            ));
        }
    }
    if limit != 0 {
        memory.limit = Some(limit);
        // A container does not swap unless that is requested.
        if swap == 0 && host.swap {
            memory.swap = Some(limit);
        }
    }
    if swap != 0 {
        let limit = memory.limit.unwrap_or(-1);
        if swap > 0 && (limit < 0 || swap < limit) {
            return Err(refuse(
                "memory_swap_limit_in_bytes",
                format!(
                    "{swap} is memory and swap together and cannot be below the limit of memory, {limit} (-1 means no limit)"
                ),
            ));
        }
        if host.swap {
            memory.swap = Some(swap);
        } else if swap > limit {
            return Err(refuse(
                "memory_swap_limit_in_bytes",
                "the host's kernel does not account for swap, so it cannot be limited; leave it out"
                    .to_owned(),
            ));
        }
    }
    merged.memory = Some(memory).filter(|memory| *memory != Memory::default());
    Ok(())
}

fn hugepages(
    limits: &mut Vec<HugepageLimit>,
    wanted: &v1::HugepageLimit,
    host: &HostFacts,
) -> Result<(), Refusal> {
    let size = &wanted.page_size;
    let number = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &size[number.len()..];
    if number.parse::<u64>().is_err() || !matches!(unit, "KB" | "MB" | "GB") {
        return Err(refuse(
            "hugepage_limits",
            format!("{size:?} is no page size such as 2MB"),
        ));
    }
    if !host.hugetlb {
        if wanted.limit == 0 {
            return Ok(());
        }
        return Err(refuse(
            "hugepage_limits",
            "the host has no hugetlb controller, so huge pages cannot be limited".to_owned(),
        ));
    }
    match limits.iter_mut().find(|limit| limit.page_size == *size) {
        Some(limit) => limit.limit = wanted.limit,
        None => limits.push(HugepageLimit {
            page_size: size.clone(),
            limit: wanted.limit,
        }),
    }
    Ok(())
}

fn unified(
    merged: &mut BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    host: &HostFacts,
) -> Result<(), Refusal> {
    if !wanted.is_empty() && host.cgroups != CgroupLayout::V2 {
        return Err(refuse(
            "unified",
            "the host has cgroup version 1; unified values need version 2".to_owned(),
        ));
    }
    for (file, value) in wanted {
        let named = file.contains('.') && !file.contains("..") && !file.starts_with('.');
        let plain = file
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        if !named || !plain || NOT_LIMITS.contains(&file.as_str()) {
            return Err(refuse(
                "unified",
                format!("{file:?} is no limit of a cgroup, such as memory.high"),
            ));
        }
        merged.insert(file.clone(), value.clone());
    }
    Ok(())
}

/// `oom_score_adj` of a container; 0 is 0.
///
/// # Errors
/// Not from -1000 to 1000.
pub fn oom_score_adj(wanted: &v1::LinuxContainerResources) -> Result<i32, Refusal> {
    i32::try_from(wanted.oom_score_adj)
        .ok()
        .filter(|value| (-1000..=1000).contains(value))
        .ok_or_else(|| {
            refuse(
                "oom_score_adj",
                format!("{} is not from -1000 to 1000", wanted.oom_score_adj),
            )
        })
}

/// The limits in force in the CRI's form.
#[must_use]
pub(crate) fn to_cri(
    resources: &LinuxResources,
    oom_score_adj: i32,
) -> v1::LinuxContainerResources {
    let cpu = resources.cpu.clone().unwrap_or_default();
    let memory = resources.memory.unwrap_or_default();
    let signed =
        |value: Option<u64>| value.map_or(0, |value| i64::try_from(value).unwrap_or(i64::MAX));
    v1::LinuxContainerResources {
        cpu_period: signed(cpu.period),
        cpu_quota: cpu.quota.unwrap_or_default(),
        cpu_shares: signed(cpu.shares),
        memory_limit_in_bytes: memory.limit.unwrap_or_default(),
        oom_score_adj: oom_score_adj.into(),
        cpuset_cpus: cpu.cpus,
        cpuset_mems: cpu.mems,
        hugepage_limits: resources
            .hugepage_limits
            .iter()
            .map(|limit| v1::HugepageLimit {
                page_size: limit.page_size.clone(),
                limit: limit.limit,
            })
            .collect(),
        unified: resources.unified.clone(),
        memory_swap_limit_in_bytes: memory.swap.unwrap_or_default(),
    }
}

fn refuse(field: &str, message: String) -> Refusal {
    Refusal::new(format!("linux.resources.{field}"), message)
}
