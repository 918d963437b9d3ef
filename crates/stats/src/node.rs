//! The usage of the machine, from the kernel's files in `/proc`. The root cgroup has no such files in
//! version 2, and may be that of a container.

use std::{fs, path::Path};

use jiff::Timestamp;
use rubelet_host::{cgroup::Pressure, meminfo::MemInfo};

use crate::{
    interfaces,
    sample::{
        CpuSample, IoSample, MemorySample, NodeSample, ProcessSample, SwapSample, UsageSample,
    },
};

/// The unit of `/proc/stat`: a hundredth of a second on every architecture.
const TICK_NS: u64 = 10_000_000;

/// Texts of the kernel's files; a file that can't be read is missing.
#[derive(Debug, Clone, Copy, Default)]
struct NodeFiles<'a> {
    stat: Option<&'a str>,
    meminfo: Option<&'a str>,
    vmstat: Option<&'a str>,
    cpu_pressure: Option<&'a str>,
    memory_pressure: Option<&'a str>,
    io_pressure: Option<&'a str>,
    net: Option<&'a str>,
    loadavg: Option<&'a str>,
    pid_max: Option<&'a str>,
    threads_max: Option<&'a str>,
}

/// Reads the usage below `root`, which is `/` except in tests. Blocks.
pub(crate) fn read(root: &Path, at: Timestamp) -> NodeSample {
    let text = |name: &str| fs::read_to_string(root.join(name)).ok();
    let (stat, meminfo, vmstat) = (text("proc/stat"), text("proc/meminfo"), text("proc/vmstat"));
    let pressure = ["cpu", "memory", "io"].map(|name| text(&format!("proc/pressure/{name}")));
    let (net, loadavg) = (text("proc/self/net/dev"), text("proc/loadavg"));
    let limits = ["pid_max", "threads-max"].map(|name| text(&format!("proc/sys/kernel/{name}")));
    parse(
        NodeFiles {
            stat: stat.as_deref(),
            meminfo: meminfo.as_deref(),
            vmstat: vmstat.as_deref(),
            cpu_pressure: pressure[0].as_deref(),
            memory_pressure: pressure[1].as_deref(),
            io_pressure: pressure[2].as_deref(),
            net: net.as_deref(),
            loadavg: loadavg.as_deref(),
            pid_max: limits[0].as_deref(),
            threads_max: limits[1].as_deref(),
        },
        at,
    )
}

fn parse(files: NodeFiles<'_>, at: Timestamp) -> NodeSample {
    let meminfo = files.meminfo.map(MemInfo::parse).unwrap_or_default();
    let fault = |name: &str| field(files.vmstat?, name);
    let usage = meminfo.total.zip(meminfo.free);
    let usage = usage.map(|(total, free)| total.saturating_sub(free));
    let working_set = meminfo.working_set();
    let available = meminfo.total.zip(working_set);
    let swap = meminfo.swap_total.zip(meminfo.swap_free);
    NodeSample {
        booted_at: files.stat.and_then(booted_at),
        usage: UsageSample {
            cpu: files.stat.and_then(busy_ns).map(|usage_ns| CpuSample {
                at,
                usage_ns,
                nano_cores: None,
                pressure: files.cpu_pressure.and_then(Pressure::parse),
            }),
            memory: usage.map(|_| MemorySample {
                at,
                usage,
                working_set,
                rss: meminfo.anonymous,
                available: available.map(|(total, used)| total.saturating_sub(used)),
                page_faults: fault("pgfault"),
                major_page_faults: fault("pgmajfault"),
                pressure: files.memory_pressure.and_then(Pressure::parse),
            }),
            swap: swap.map(|(total, free)| SwapSample {
                at,
                usage: Some(total.saturating_sub(free)),
                available: Some(free),
            }),
            io: files
                .io_pressure
                .and_then(Pressure::parse)
                .map(|pressure| IoSample { at, pressure }),
        },
        network: files.net.and_then(|text| interfaces::of_node(text, at)),
        processes: processes(&files, at),
        cores: files.stat.map(cores).filter(|cores| *cores > 0),
        memory_capacity: meminfo.total,
        ..NodeSample::default()
    }
}

/// Processes and threads: of `2/3518` in `/proc/loadavg`, two run.
fn processes(files: &NodeFiles<'_>, at: Timestamp) -> Option<ProcessSample> {
    let number = |text: Option<&str>| text?.trim().parse::<u64>().ok();
    let tasks = files.loadavg?.split_whitespace().nth(3)?;
    Some(ProcessSample {
        at,
        running: number(tasks.split_once('/').map(|(_, all)| all))?,
        max: number(files.pid_max)?.min(number(files.threads_max)?),
    })
}

/// The number in a line such as `pgfault 12`.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    let number = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    number.trim().parse().ok()
}

/// CPU time of all processors that was neither idle nor waiting for disks, in nanoseconds.
fn busy_ns(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal; that of guests is part of `user`.
    let mut ticks: u64 = 0;
    for (place, number) in line.split_whitespace().take(8).enumerate() {
        if !matches!(place, 3 | 4) {
            ticks = ticks.saturating_add(number.parse().ok()?);
        }
    }
    Some(ticks.saturating_mul(TICK_NS))
}

/// Processors that are online, by their lines.
fn cores(stat: &str) -> u64 {
    let is_core = |line: &&str| {
        let rest = line.strip_prefix("cpu");
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    stat.lines().filter(is_core).count() as u64
}

/// The time of the boot, in a line of its own.
fn booted_at(stat: &str) -> Option<Timestamp> {
    Timestamp::from_second(field(stat, "btime")?.try_into().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  10 1 5 1000 200 2 3 4 7 0\ncpu0 10 1 5 1000 200 2 3 4 7 0\nbtime 1800000000\nintr 9\n";
    const MEMINFO: &str = "MemTotal: 1000 kB\nMemFree: 300 kB\nMemAvailable: 1 kB\n\
        Inactive: 900 kB\nInactive(file): 200 kB\nAnonPages: 50 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n";

    #[test]
    fn idle_time_and_the_inactive_page_cache_are_not_used() {
        let at = Timestamp::UNIX_EPOCH;
        let files = NodeFiles {
            stat: Some(STAT),
            meminfo: Some(MEMINFO),
            vmstat: Some("pgfault 12\npgmajfault 3\n"),
            cpu_pressure: Some("some avg10=1.50 avg60=0.00 avg300=0.00 total=7\n"),
            loadavg: Some("1.36 3.49 4.53 2/350 3715089\n"),
            pid_max: Some("4000\n"),
            threads_max: Some("1000\n"),
            ..NodeFiles::default()
        };
        let node = parse(files, at);
        assert_eq!(
            (node.cores, node.memory_capacity),
            (Some(1), Some(1000 << 10))
        );
        let cpu = node.usage.cpu.unwrap();
        assert_eq!(
            node.booted_at.map(Timestamp::as_second),
            Some(1_800_000_000)
        );
        assert_eq!(cpu.usage_ns, 25 * TICK_NS);
        assert_eq!(cpu.pressure.unwrap().some.total_ns, 7000);
        let memory = node.usage.memory.unwrap();
        assert_eq!(memory.usage, Some(700 << 10));
        assert_eq!(memory.working_set, Some(500 << 10));
        assert_eq!(memory.available, Some(500 << 10));
        assert_eq!(memory.rss, Some(50 << 10));
        assert_eq!(
            (memory.page_faults, memory.major_page_faults),
            (Some(12), Some(3))
        );
        assert_eq!(memory.pressure, None);
        let processes = node.processes.unwrap();
        assert_eq!((processes.running, processes.max), (350, 1000));
        let swap = node.usage.swap.unwrap();
        assert_eq!((swap.usage, swap.available), (Some(6 << 10), Some(4 << 10)));
    }

    #[test]
    fn numbers_of_files_that_cannot_be_read_are_missing() {
        let at = Timestamp::UNIX_EPOCH;
        assert_eq!(parse(NodeFiles::default(), at), NodeSample::default());
        let files = NodeFiles {
            stat: Some("cpu  1 x\n"),
            meminfo: Some("MemTotal: 1 kB\n"),
            ..NodeFiles::default()
        };
        let expected = NodeSample {
            memory_capacity: Some(1 << 10),
            ..NodeSample::default()
        };
        assert_eq!(parse(files, at), expected);
    }

    #[test]
    fn this_machine_can_be_measured() {
        let node = read(Path::new("/"), Timestamp::UNIX_EPOCH);
        assert!(node.usage.cpu.unwrap().usage_ns > 0);
        assert!(node.usage.memory.unwrap().working_set > Some(0));
    }
}
