//! From thousandths of a core to shares, weights and quotas.

/// The kernel's minimum, for pods without a request.
pub const MIN_SHARES: u64 = 2;
/// The kernel's maximum.
pub const MAX_SHARES: u64 = 262_144;
/// The kernel's minimum quota: one millisecond.
const MIN_QUOTA_US: u64 = 1_000;
const SECOND_US: u64 = 1_000_000;
/// A percent of a CPU, in each second.
const PERCENT_US: u64 = 10_000;

/// One CPU share in the units of both cgroup versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuShare {
    /// `cpu.shares` of version 1: 2 to 262144, 1024 for a core.
    pub shares: u64,
    /// `cpu.weight` of version 2: 1 to 10000.
    pub weight: u64,
}

/// CPU time per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuQuota {
    /// Microseconds of CPU time in each period; `None` removes the limit.
    pub quota_us: Option<u64>,
    /// Length of the period in microseconds.
    pub period_us: u64,
}

/// `cpu.shares` for a request in thousandths of a core: 1024 for a core, at least 2, at most
/// 262144.
#[must_use]
pub fn shares(request: u64) -> u64 {
    (request.saturating_mul(1024) / 1000).clamp(MIN_SHARES, MAX_SHARES)
}

/// `cpu.weight` for shares, by the linear conversion that the kubelet uses for its own cgroups.
/// (The runtime converts the shares of containers with its own formula.)
#[must_use]
pub fn weight(shares: u64) -> u64 {
    let shares = shares.clamp(MIN_SHARES, MAX_SHARES);
    1 + (shares - MIN_SHARES) * 9999 / (MAX_SHARES - MIN_SHARES)
}

/// A request in thousandths of a core, for both cgroup versions.
#[must_use]
pub fn share(request: u64) -> CpuShare {
    let shares = shares(request);
    CpuShare {
        shares,
        weight: weight(shares),
    }
}

/// Microseconds of processor time per period for a limit in thousandths of a core; at least a
/// millisecond.
#[must_use]
pub fn quota_us(limit: u64, period_us: u64) -> u64 {
    (limit.saturating_mul(period_us) / 1000).max(MIN_QUOTA_US)
}

/// A limit in thousandths of a core as a quota; `enforce` false lifts it.
#[must_use]
pub fn quota(limit: u64, period_us: u64, enforce: bool) -> CpuQuota {
    CpuQuota {
        quota_us: enforce.then(|| quota_us(limit, period_us)),
        period_us,
    }
}

/// `CPUQuotaPerSecUSec` of systemd for a quota: microseconds of CPU time per second. systemd counts in
/// whole percents of a CPU. Rounded up, or a slice could have less than a container in it.
#[must_use]
pub fn systemd_quota_us(quota_us: u64, period_us: u64) -> u64 {
    let per_second = quota_us.saturating_mul(SECOND_US) / period_us.max(1);
    per_second.div_ceil(PERCENT_US).saturating_mul(PERCENT_US)
}

/// The quota that systemd sets when it is given this one.
#[must_use]
pub fn systemd_quota(quota: CpuQuota) -> CpuQuota {
    let period_us = quota.period_us;
    let in_force = |quota_us| {
        let per_second = systemd_quota_us(quota_us, period_us);
        per_second.saturating_mul(period_us).div_ceil(SECOND_US)
    };
    CpuQuota {
        quota_us: quota.quota_us.map(in_force),
        period_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_requests_within_the_kernels_limits() {
        for (request, expected) in [
            (0, 2),
            (1, 2),
            (2, 2),
            (3, 3),
            (100, 102),
            (1000, 1024),
            (256_000, 262_144),
            (u64::MAX, MAX_SHARES),
        ] {
            assert_eq!(shares(request), expected, "{request}m");
        }
    }

    #[test]
    fn weights_span_their_whole_range() {
        for (shares, expected) in [(0, 1), (2, 1), (102, 4), (1024, 39), (262_144, 10_000)] {
            assert_eq!(weight(shares), expected, "{shares} shares");
        }
    }

    #[test]
    fn quotas_follow_limits_and_have_a_floor() {
        for (limit, period, expected) in [
            (1, 100_000, 1_000),
            (10, 100_000, 1_000),
            (11, 100_000, 1_100),
            (500, 100_000, 50_000),
            (2_000, 100_000, 200_000),
            (1_000, 5_000, 5_000),
        ] {
            assert_eq!(quota_us(limit, period), expected, "{limit}m of {period} us");
        }
        assert_eq!(quota(500, 100_000, false).quota_us, None);
    }
    #[test]
    fn quotas_of_systemd_are_rounded_up_to_whole_percents() {
        for (quota_us, period_us, per_second, in_force) in [
            (50_000, 100_000, 500_000, 50_000),
            (50_500, 100_000, 510_000, 51_000),
            (1_000, 100_000, 10_000, 1_000),
            (1_000, 50_000, 20_000, 1_000),
            (1_000, 1_000, 1_000_000, 1_000),
            (3_000, 1_000_000, 10_000, 10_000),
            // The kernel's minimum.
            (1_000, 33_333, 30_000, 1_000),
            (400_000, 100_000, 4_000_000, 400_000),
        ] {
            let name = format!("{quota_us} of {period_us} us");
            assert_eq!(systemd_quota_us(quota_us, period_us), per_second, "{name}");
            let quota = systemd_quota(CpuQuota {
                quota_us: Some(quota_us),
                period_us,
            });
            assert_eq!(quota.quota_us, Some(in_force), "{name}");
            assert_eq!(systemd_quota(quota), quota, "{name}");
        }
        let none = quota(500, 100_000, false);
        assert_eq!(systemd_quota(none), none);
    }
}
