//! From the statistics of a cgroup to a sample.

use jiff::Timestamp;
use rubelet_host::cgroup::CgroupStats;

use crate::sample::{CpuSample, IoSample, MemorySample, SwapSample, UsageSample};

/// The usage of a cgroup that was read at `at`.
pub(crate) fn usage(stats: &CgroupStats, at: Timestamp) -> UsageSample {
    UsageSample {
        cpu: stats.cpu.map(|cpu| CpuSample {
            at,
            usage_ns: cpu.usage_ns,
            nano_cores: None,
            pressure: stats.psi.cpu,
        }),
        memory: stats.memory.map(|memory| MemorySample {
            at,
            usage: Some(memory.usage),
            working_set: Some(memory.working_set),
            rss: Some(memory.rss),
            available: memory.available(),
            page_faults: Some(memory.page_faults),
            major_page_faults: Some(memory.major_page_faults),
            pressure: stats.psi.memory,
        }),
        swap: stats.swap.map(|swap| SwapSample {
            at,
            usage: Some(swap.usage),
            available: swap.limit.map(|limit| limit.saturating_sub(swap.usage)),
        }),
        io: stats.psi.io.map(|pressure| IoSample { at, pressure }),
    }
}

#[cfg(test)]
mod tests {
    use rubelet_host::cgroup::{CpuStats, MemoryStats, SwapStats};

    use super::*;

    #[test]
    fn missing_controllers_give_no_numbers() {
        let at = Timestamp::UNIX_EPOCH;
        assert_eq!(usage(&CgroupStats::default(), at), UsageSample::default());
        let stats = CgroupStats {
            cpu: Some(CpuStats {
                usage_ns: 5,
                ..CpuStats::default()
            }),
            memory: Some(MemoryStats {
                usage: 10,
                working_set: 4,
                limit: Some(6),
                ..MemoryStats::default()
            }),
            swap: Some(SwapStats {
                usage: 3,
                limit: Some(2),
            }),
            ..CgroupStats::default()
        };
        let found = usage(&stats, at);
        assert!(found.is_complete());
        assert_eq!(found.cpu.map(|cpu| cpu.usage_ns), Some(5));
        assert_eq!(found.memory.and_then(|memory| memory.available), Some(2));
        assert_eq!(found.swap.and_then(|swap| swap.available), Some(0));
    }
}
