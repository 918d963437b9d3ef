//! Limits as systemd properties (`systemd.resource-control(5)`).

mod unified;

use rubelet_cgroup_plan::{CgroupLayout, CgroupValues, cpu};
use rubelet_oci::{Cpu, DeviceKind, DeviceRule, LinuxResources, Memory};

use crate::{cgroup::cpu_weight, dbus::wire::Value};

/// systemd's `infinity`.
const NO_LIMIT: u64 = u64::MAX;
/// The kernel's default, in microseconds.
const DEFAULT_PERIOD: u64 = 100_000;

/// Properties, each at most once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Properties(Vec<(&'static str, Value)>);

impl Properties {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_inner(self) -> Vec<(&'static str, Value)> {
        self.0
    }

    /// Sets a property, in place of an earlier value.
    fn set(&mut self, name: &'static str, value: Value) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }

    fn number(&mut self, name: &'static str, number: u64) {
        self.set(name, Value::Number64(number));
    }

    /// Sets a limit of at least 1, since systemd rejects 0.
    fn positive(&mut self, name: &'static str, number: u64) {
        self.number(name, number.max(1));
    }

    /// Sets the quota; `None` means no limit.
    fn cpu_quota(&mut self, quota_us: Option<u64>, period_us: u64) {
        let per_second = quota_us.map_or(NO_LIMIT, |us| cpu::systemd_quota_us(us, period_us));
        self.number("CPUQuotaPerSecUSec", per_second);
    }

    fn period(&mut self, period_us: u64) {
        self.number("CPUQuotaPeriodUSec", period_us);
    }
}

/// Properties of a slice. There is none for huge pages.
pub(super) fn of_values(values: &CgroupValues, layout: CgroupLayout) -> Properties {
    let v2 = layout == CgroupLayout::V2;
    let mut properties = Properties::default();
    match values.cpu {
        Some(cpu) if v2 => properties.number("CPUWeight", cpu.weight),
        Some(cpu) => properties.number("CPUShares", cpu.shares),
        None => {}
    }
    if let Some(quota) = values.cpu_quota {
        properties.period(quota.period_us);
        properties.cpu_quota(quota.quota_us, quota.period_us);
    }
    if let Some(limit) = values.memory_limit {
        // The kernel treats larger values as no limit.
        let limit = if limit >= i64::MAX.unsigned_abs() {
            NO_LIMIT
        } else {
            limit
        };
        properties.positive(memory_max(v2), limit);
    }
    for (name, bytes) in [
        ("MemoryMin", values.memory_min),
        ("MemoryLow", values.memory_low),
    ] {
        if let Some(bytes) = bytes.filter(|_| v2) {
            properties.number(name, bytes);
        }
    }
    if let Some(limit) = values.pids_limit {
        properties.positive("TasksMax", limit);
    }
    properties
}

/// Properties of a container's scope.
pub(super) fn of_resources(limits: &LinuxResources, layout: CgroupLayout) -> Properties {
    let v2 = layout == CgroupLayout::V2;
    let mut properties = Properties::default();
    if let Some(cpu) = &limits.cpu {
        add_cpu(&mut properties, cpu, v2);
    }
    if let Some(memory) = limits.memory {
        add_memory(&mut properties, memory, v2);
    }
    if let Some(pids) = limits.pids.filter(|pids| pids.limit != 0) {
        properties.number("TasksMax", bytes(pids.limit));
    }
    if !limits.devices.is_empty() {
        add_devices(&mut properties, &limits.devices);
    }
    if v2 {
        unified::add(&mut properties, &limits.unified);
    }
    properties
}

fn memory_max(v2: bool) -> &'static str {
    if v2 { "MemoryMax" } else { "MemoryLimit" }
}

fn add_cpu(properties: &mut Properties, cpu: &Cpu, v2: bool) {
    match cpu.shares.filter(|shares| *shares > 0) {
        Some(shares) if v2 => properties.number("CPUWeight", cpu_weight(shares)),
        Some(shares) => properties.number("CPUShares", shares),
        None => {}
    }
    let period = cpu.period.filter(|period| *period > 0);
    if let Some(period) = period {
        properties.period(period);
    }
    if let Some(quota) = cpu.quota.filter(|quota| *quota != 0) {
        properties.cpu_quota(u64::try_from(quota).ok(), period.unwrap_or(DEFAULT_PERIOD));
    }
    // Version 1's cpusets are not systemd's.
    for (name, list) in [
        ("AllowedCPUs", &cpu.cpus),
        ("AllowedMemoryNodes", &cpu.mems),
    ] {
        if let Some(bits) = bits(list).filter(|_| v2) {
            properties.set(name, Value::Bytes(bits));
        }
    }
}

fn add_memory(properties: &mut Properties, memory: Memory, v2: bool) {
    let limit = memory.limit.filter(|limit| *limit != 0);
    if let Some(limit) = limit {
        properties.number(memory_max(v2), bytes(limit));
    }
    if !v2 {
        return;
    }
    if let Some(reservation) = memory.reservation.filter(|bytes| *bytes != 0) {
        properties.number("MemoryLow", bytes(reservation));
    }
    let swap = match (limit, memory.swap.filter(|swap| *swap != 0)) {
        (Some(limit), None) if limit < 0 => NO_LIMIT,
        (_, Some(both)) if both < 0 => NO_LIMIT,
        (Some(limit), Some(both)) if limit > 0 && both >= limit => bytes(both - limit),
        _ => return,
    };
    properties.number("MemorySwapMax", swap);
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
        properties.set("DevicePolicy", Value::Text("auto".to_owned()));
        properties.set("DeviceAllow", Value::Pairs(Vec::new()));
        return;
    }
    let allowed = rules.iter().filter(|rule| rule.allow);
    let pairs = allowed.filter_map(|rule| Some((device(rule)?, rule.access.clone())));
    properties.set("DevicePolicy", Value::Text("strict".to_owned()));
    properties.set("DeviceAllow", Value::Pairs(pairs.collect()));
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
