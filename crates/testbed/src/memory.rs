//! Memory of this machine.

use std::fs;

use anyhow::{Context, Result};

/// The memory of this machine, in bytes.
///
/// # Errors
/// The kernel's file has an unknown form.
pub fn total_bytes() -> Result<u64> {
    in_meminfo(&meminfo()?, "MemTotal:")
}

/// The memory outside the working set of the machine, in bytes, as the kubelet computes it.
///
/// # Errors
/// The kernel's files have an unknown form.
pub fn available_bytes() -> Result<u64> {
    // The root cgroup of version 1 counts little of the kernel's own memory.
    let root = |file: &str| fs::read_to_string(format!("/sys/fs/cgroup/memory/memory.{file}"));
    match (root("usage_in_bytes"), root("stat")) {
        (Ok(usage), Ok(stat)) => {
            let usage: u64 = usage.trim().parse()?;
            let working_set = usage.saturating_sub(number(&stat, "total_inactive_file ")?);
            Ok(total_bytes()?.saturating_sub(working_set))
        }
        _ => {
            let text = meminfo()?;
            Ok(in_meminfo(&text, "MemFree:")? + in_meminfo(&text, "Inactive(file):")?)
        }
    }
}

fn meminfo() -> Result<String> {
    Ok(fs::read_to_string("/proc/meminfo")?)
}

fn in_meminfo(text: &str, name: &str) -> Result<u64> {
    Ok(number(text, name)? * 1024)
}

fn number(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.with_context(|| format!("no line {name}"))?;
    Ok(number.trim().trim_end_matches(" kB").parse()?)
}
