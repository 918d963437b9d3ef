//! Properties for the `unified` values of a container: files of cgroup version 2. They override the
//! other limits, as in the cgroup, where `cgroup/apply/unified.rs` writes them last.

use std::collections::BTreeMap;

use super::{DEFAULT_PERIOD, NO_LIMIT, Properties, bits};
use crate::dbus::wire::Value;

/// Adds the properties. Files without one, and values that are neither a number nor `max`, are only
/// written to the cgroup; the kernel rejects invalid ones.
pub(super) fn add(properties: &mut Properties, files: &BTreeMap<String, String>) {
    for (file, value) in files {
        // The kernel ignores whitespace around a value.
        let _ = property(properties, file, value.trim());
    }
}

fn property(properties: &mut Properties, file: &str, value: &str) -> Option<()> {
    match file {
        "cpu.weight" => properties.number("CPUWeight", weight(value)?),
        "cpu.max" => {
            let mut words = value.split_whitespace();
            let quota = amount(words.next()?)?;
            let period = words.next().map(str::parse).transpose().ok()?;
            let period = period.filter(|period| *period > 0);
            if let Some(period) = period {
                properties.period(period);
            }
            let quota = Some(quota).filter(|quota| *quota != NO_LIMIT);
            properties.cpu_quota(quota, period.unwrap_or(DEFAULT_PERIOD));
        }
        "cpuset.cpus" => properties.set("AllowedCPUs", Value::Bytes(bits(value)?)),
        "cpuset.mems" => properties.set("AllowedMemoryNodes", Value::Bytes(bits(value)?)),
        "memory.min" => properties.number("MemoryMin", amount(value)?),
        "memory.low" => properties.number("MemoryLow", amount(value)?),
        "memory.high" => properties.positive("MemoryHigh", amount(value)?),
        "memory.max" => properties.positive("MemoryMax", amount(value)?),
        "memory.swap.max" => properties.number("MemorySwapMax", amount(value)?),
        "pids.max" => properties.positive("TasksMax", amount(value)?),
        _ => return None,
    }
    Some(())
}

/// A number, or `max`.
fn amount(value: &str) -> Option<u64> {
    match value {
        "max" => Some(NO_LIMIT),
        number => number.parse().ok(),
    }
}

/// systemd rejects the whole call for an invalid weight.
fn weight(value: &str) -> Option<u64> {
    let weight = value.parse().ok()?;
    (1..=10_000).contains(&weight).then_some(weight)
}
