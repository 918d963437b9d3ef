//! Limits as systemd properties (`systemd.resource-control(5)`).

use rubelet_cgroup_plan::CgroupLayout;
use rubelet_oci::{Cpu, DeviceKind, DeviceRule, LinuxResources, Memory};

use super::wire::Value;
use crate::cgroup::cpu_weight;

type Properties = Vec<(&'static str, Value)>;

/// systemd's `infinity`.
const NO_LIMIT: u64 = u64::MAX;

pub(super) fn properties(limits: &LinuxResources, layout: CgroupLayout) -> Properties {
    let v2 = layout == CgroupLayout::V2;
    let mut properties = Properties::new();
    if let Some(cpu) = &limits.cpu {
        add_cpu(&mut properties, cpu, v2);
    }
    if let Some(memory) = limits.memory {
        add_memory(&mut properties, memory, v2);
    }
    if let Some(pids) = limits.pids.filter(|pids| pids.limit != 0) {
        properties.push(("TasksMax", Value::Number64(bytes(pids.limit))));
    }
    if !limits.devices.is_empty() {
        add_devices(&mut properties, &limits.devices);
    }
    properties
}

fn add_cpu(properties: &mut Properties, cpu: &Cpu, v2: bool) {
    match cpu.shares.filter(|shares| *shares > 0) {
        Some(shares) if v2 => {
            properties.push(("CPUWeight", Value::Number64(cpu_weight(shares))));
        }
        Some(shares) => properties.push(("CPUShares", Value::Number64(shares))),
        None => {}
    }
    let period = cpu.period.filter(|period| *period > 0);
    if let Some(period) = period {
        properties.push(("CPUQuotaPeriodUSec", Value::Number64(period)));
    }
    if let Some(quota) = cpu.quota.filter(|quota| *quota != 0) {
        let quota = match u64::try_from(quota) {
            // systemd has a resolution of one percent of a CPU; rounded up, or its own value would
            // be the lower one.
            Ok(quota) => {
                let per_second = quota.saturating_mul(1_000_000) / period.unwrap_or(100_000);
                per_second.div_ceil(10_000).saturating_mul(10_000)
            }
            Err(_) => NO_LIMIT,
        };
        properties.push(("CPUQuotaPerSecUSec", Value::Number64(quota)));
    }
    // Version 1's cpusets are not systemd's.
    for (name, list) in [
        ("AllowedCPUs", &cpu.cpus),
        ("AllowedMemoryNodes", &cpu.mems),
    ] {
        if let Some(bits) = bits(list).filter(|_| v2) {
            properties.push((name, Value::Bytes(bits)));
        }
    }
}

fn add_memory(properties: &mut Properties, memory: Memory, v2: bool) {
    let limit = memory.limit.filter(|limit| *limit != 0);
    if let Some(limit) = limit {
        let name = if v2 { "MemoryMax" } else { "MemoryLimit" };
        properties.push((name, Value::Number64(bytes(limit))));
    }
    if !v2 {
        return;
    }
    if let Some(reservation) = memory.reservation.filter(|bytes| *bytes != 0) {
        properties.push(("MemoryLow", Value::Number64(bytes(reservation))));
    }
    let swap = match (limit, memory.swap.filter(|swap| *swap != 0)) {
        (Some(limit), None) if limit < 0 => NO_LIMIT,
        (_, Some(both)) if both < 0 => NO_LIMIT,
        (Some(limit), Some(both)) if limit > 0 && both >= limit => bytes(both - limit),
        _ => return,
    };
    properties.push(("MemorySwapMax", Value::Number64(swap)));
}

fn bytes(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(NO_LIMIT)
}

/// systemd allows all devices if nothing is set, and on version 1 it does so again on each reload.
/// The actual rules are applied by [`CgroupFs::apply_devices`], on version 2 in addition to this
/// list.
///
/// [`CgroupFs::apply_devices`]: crate::CgroupFs::apply_devices
fn add_devices(properties: &mut Properties, rules: &[DeviceRule]) {
    let open = |rule: &&DeviceRule| rule.kind == DeviceKind::All && rule.allow;
    if rules.iter().any(|rule| open(&rule)) {
        properties.push(("DevicePolicy", Value::Text("auto".to_owned())));
        properties.push(("DeviceAllow", Value::Pairs(Vec::new())));
        return;
    }
    let allowed = rules.iter().filter(|rule| rule.allow);
    let pairs = allowed.filter_map(|rule| Some((device(rule)?, rule.access.clone())));
    properties.push(("DevicePolicy", Value::Text("strict".to_owned())));
    properties.push(("DeviceAllow", Value::Pairs(pairs.collect())));
}

/// A device as systemd names it. All minor numbers of a driver are given by its name in
/// `/proc/devices`, or by its number, which also works if no such driver is loaded.
fn device(rule: &DeviceRule) -> Option<String> {
    let kind = match rule.kind {
        DeviceKind::Char => "char",
        DeviceKind::Block => "block",
        DeviceKind::Fifo | DeviceKind::All => return None,
    };
    let number = |number: Option<i64>| number.filter(|number| *number >= 0);
    Some(match (number(rule.major), number(rule.minor)) {
        (Some(major), Some(minor)) => format!("/dev/{kind}/{major}:{minor}"),
        (Some(major), None) => format!("{kind}-{major}"),
        (None, _) => format!("{kind}-*"),
    })
}

/// A list of numbers such as `0-2,7` as a bitmap, the lowest first.
fn bits(list: &str) -> Option<Vec<u8>> {
    let mut bits = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last > 8192 {
            return None;
        }
        for number in first..=last {
            let byte = number / 8;
            if bits.len() <= byte {
                bits.resize(byte + 1, 0_u8);
            }
            bits[byte] |= 1 << (number % 8);
        }
    }
    (!bits.is_empty()).then_some(bits)
}

#[cfg(test)]
mod tests;
