//! Converts cgroup statistics to CRI messages.

use rubelet_cri::v1;
use rubelet_host::cgroup::{CgroupStats, Pressure, PressureLine};

/// The statistics that containers and pods both have.
#[derive(Debug, Default)]
pub(super) struct UsageStats {
    pub(super) cpu: Option<v1::CpuUsage>,
    pub(super) memory: Option<v1::MemoryUsage>,
    pub(super) swap: Option<v1::SwapUsage>,
    pub(super) io: Option<v1::IoUsage>,
    pub(super) processes: Option<u64>,
}

/// `cores` is the CPU usage in nanoseconds per second since the previous reading; `None` at the
/// first one. `memory_total` bounds the available memory without a limit.
pub(super) fn convert(stats: &CgroupStats, at: i64, cores: Option<u64>) -> UsageStats {
    UsageStats {
        cpu: stats.cpu.map(|cpu| v1::CpuUsage {
            timestamp: at,
            usage_core_nano_seconds: value(cpu.usage_ns),
            usage_nano_cores: cores.and_then(value),
            psi: psi(stats.psi.cpu),
        }),
        memory: stats.memory.map(|memory| v1::MemoryUsage {
            timestamp: at,
            working_set_bytes: value(memory.working_set),
            // Without a limit it is 0, as in containerd.
            available_bytes: value(memory.available().unwrap_or(0)),
            usage_bytes: value(memory.usage),
            rss_bytes: value(memory.rss),
            page_faults: value(memory.page_faults),
            major_page_faults: value(memory.major_page_faults),
            psi: psi(stats.psi.memory),
        }),
        swap: stats.swap.map(|swap| v1::SwapUsage {
            timestamp: at,
            swap_available_bytes: swap
                .limit
                .and_then(|limit| value(limit.saturating_sub(swap.usage))),
            swap_usage_bytes: value(swap.usage),
        }),
        io: stats.psi.io.map(|io| v1::IoUsage {
            timestamp: at,
            psi: psi(Some(io)),
        }),
        processes: stats.pids.map(|pids| pids.current),
    }
}

/// A number in the CRI's wrapper.
#[expect(
    clippy::unnecessary_wraps,
    reason = "every field that takes one is optional"
)]
pub(crate) fn value(value: u64) -> Option<v1::UInt64Value> {
    Some(v1::UInt64Value { value })
}

fn psi(pressure: Option<Pressure>) -> Option<v1::PsiStats> {
    let line = |line: PressureLine| v1::PsiData {
        total: line.total_ns,
        avg10: line.avg10,
        avg60: line.avg60,
        avg300: line.avg300,
    };
    pressure.map(|pressure| v1::PsiStats {
        full: Some(line(pressure.full)),
        some: Some(line(pressure.some)),
    })
}

#[cfg(test)]
mod tests {
    use rubelet_host::cgroup::{CpuStats, MemoryStats};

    use super::*;

    #[test]
    fn a_cgroup_without_a_limit_has_no_memory_available_and_missing_controllers_no_numbers() {
        let stats = CgroupStats {
            cpu: Some(CpuStats {
                usage_ns: 7,
                ..CpuStats::default()
            }),
            memory: Some(MemoryStats {
                usage: 10,
                working_set: 4,
                limit: Some(6),
                ..MemoryStats::default()
            }),
            ..CgroupStats::default()
        };
        let found = convert(&stats, 5, Some(2));
        let cpu = found.cpu.unwrap();
        assert_eq!((cpu.timestamp, cpu.usage_core_nano_seconds), (5, value(7)));
        assert_eq!(cpu.usage_nano_cores, value(2));
        let memory = found.memory.unwrap();
        assert_eq!(memory.available_bytes, value(2));
        assert_eq!(memory.working_set_bytes, value(4));
        assert!(found.swap.is_none() && found.io.is_none());
    }
}
