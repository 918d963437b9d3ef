//! Processors.

use rubelet_oci::Cpu;

use crate::cgroup::write::{WriteError, Writer};

pub(super) fn apply(writer: &mut Writer<'_>, cpu: &Cpu, v2: bool) {
    let idle = cpu.idle.is_some_and(|idle| idle != 0);
    if let Some(value) = cpu.idle {
        match writer.attempt("cpu", "cpu.idle", &value.to_string()) {
            Ok(()) => {}
            // Kernels before 5.15 have no idle priority to disable.
            Err(WriteError::NoController { .. }) if !idle => {}
            Err(error) => writer.push(error),
        }
    }
    // Idle cgroups have no weight, and the kernel rejects one.
    if let Some(shares) = cpu.shares.filter(|shares| *shares > 0 && !idle) {
        if v2 {
            writer.write("cpu", "cpu.weight", &weight(shares).to_string());
        } else {
            writer.write("cpu", "cpu.shares", &shares.to_string());
        }
    }
    let quota = cpu.quota.filter(|quota| *quota != 0);
    let period = cpu.period.filter(|period| *period != 0);
    if v2 {
        quota_v2(writer, quota, period);
    } else {
        quota_v1(writer, quota, period);
    }
    for (file, list) in [("cpuset.cpus", &cpu.cpus), ("cpuset.mems", &cpu.mems)] {
        if !list.is_empty() {
            writer.write("cpuset", file, list);
        }
    }
}

fn quota_v1(writer: &mut Writer<'_>, quota: Option<i64>, period: Option<u64>) {
    let period = period.map(|period| period.to_string());
    let quota = quota.map(|quota| quota.max(-1).to_string());
    match (quota, period) {
        (Some(quota), Some(period)) => writer.write_quota_v1(&quota, &period),
        (Some(quota), None) => writer.write("cpu", "cpu.cfs_quota_us", &quota),
        (None, Some(period)) => writer.write("cpu", "cpu.cfs_period_us", &period),
        (None, None) => {}
    }
}

fn quota_v2(writer: &mut Writer<'_>, quota: Option<i64>, period: Option<u64>) {
    let quota = quota.map(|quota| match quota {
        quota if quota < 0 => "max".to_owned(),
        quota => quota.to_string(),
    });
    let value = match (quota, period) {
        (Some(quota), Some(period)) => format!("{quota} {period}"),
        // The kernel keeps the current period.
        (Some(quota), None) => quota,
        (None, Some(period)) => {
            // A period can't be written alone.
            let kept = writer.read("cpu", "cpu.max");
            let kept = kept
                .as_deref()
                .and_then(|text| text.split_whitespace().next());
            format!("{} {period}", kept.unwrap_or("max"))
        }
        (None, None) => return,
    };
    writer.write("cpu", "cpu.max", &value);
}

/// Converts `cpu.shares` of version 1 (2 to 262144, default 1024) to `cpu.weight` of version 2 (1
/// to 10000, default 100), with the formula of the OCI runtimes since 2025, which maps the default
/// to the default and the limits to the limits: 10^((x^2 + 125 x)/612 - 7/34), where x is the
/// binary logarithm of the shares.
pub(crate) fn weight(shares: u64) -> u64 {
    const LEAST: u64 = 2;
    const MOST: u64 = 262_144;
    match shares {
        ..=LEAST => 1,
        MOST.. => 10_000,
        shares => {
            #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
            let x = (shares as f64).log2();
            let weight = 10f64.powf((x * x + 125.0 * x) / 612.0 - 7.0 / 34.0).ceil();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 1 and 10000"
            )]
            let weight = weight as u64;
            weight.clamp(1, 10_000)
        }
    }
}
