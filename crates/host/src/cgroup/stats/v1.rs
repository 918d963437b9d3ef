//! Statistics of version 1: each controller has its own directory, or none.

use rubelet_cgroup_plan::CgroupPath;

use super::{
    CgroupFs, CgroupStats, CpuStats, HugetlbStats, IoStats, MemoryStats, StatsError, StatsScope,
    SwapStats,
    read::{StatsDir, StatsReader, device, fields, page_sizes},
};

/// Version 1 reports an unset limit as a number of pages that no machine has.
const NO_LIMIT: u64 = 1 << 60;

pub(super) fn stats(
    reader: &mut StatsReader<'_>,
    path: &CgroupPath,
    scope: StatsScope,
) -> Result<CgroupStats, StatsError> {
    let all = scope >= StatsScope::Counters;
    let path = path.relative();
    let mut stats = CgroupStats::default();
    let quota_is_there = reader.fs.hierarchy("cpu") == reader.fs.hierarchy("cpuacct");
    if let Some(mut accounting) = reader.dir("cpuacct", path) {
        let mut cpu = CpuStats {
            usage_ns: accounting.number("cpuacct.usage")?.unwrap_or_default(),
            ..CpuStats::default()
        };
        if all {
            parts(&mut accounting, &mut cpu)?;
            if quota_is_there {
                throttling(&mut accounting, &mut cpu)?;
            } else if let Some(mut quota) = reader.dir("cpu", path) {
                throttling(&mut quota, &mut cpu)?;
            }
        }
        stats.cpu = Some(cpu);
    }
    if let Some(dir) = reader.dir("memory", path) {
        let mut dir = if all { dir.open() } else { dir };
        let (memory, swap) = memory(&mut dir, all)?;
        (stats.memory, stats.swap) = (Some(memory), swap);
    }
    if scope != StatsScope::Usage
        && let Some(mut dir) = reader.dir("pids", path)
    {
        stats.pids = dir.pids(scope)?;
    }
    if !all {
        return Ok(stats);
    }
    if let Some(mut dir) = reader.dir("blkio", path) {
        stats.io = io(&mut dir)?;
    }
    if scope == StatsScope::All
        && let Some(dir) = reader.dir("hugetlb", path)
    {
        stats.hugetlb = hugetlb(&mut dir.open())?;
    }
    Ok(stats)
}

/// The parts of the CPU time.
fn parts(reader: &mut StatsDir<'_>, cpu: &mut CpuStats) -> Result<(), StatsError> {
    // In user-space clock ticks, of which there are a hundred a second everywhere.
    const TICK_NS: u64 = 10_000_000;
    for (name, ticks) in fields(reader.optional("cpuacct.stat")?.unwrap_or_default()) {
        match name {
            "user" => cpu.user_ns = ticks.saturating_mul(TICK_NS),
            "system" => cpu.system_ns = ticks.saturating_mul(TICK_NS),
            _ => {}
        }
    }
    Ok(())
}

fn throttling(reader: &mut StatsDir<'_>, cpu: &mut CpuStats) -> Result<(), StatsError> {
    for (name, value) in fields(reader.optional("cpu.stat")?.unwrap_or_default()) {
        match name {
            "nr_periods" => cpu.periods = value,
            "nr_throttled" => cpu.throttled_periods = value,
            "throttled_time" => cpu.throttled_ns = value,
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn root_memory(fs: &CgroupFs) -> Option<MemoryStats> {
    let mut reader = fs.stats_reader();
    let read = memory(&mut reader.dir("memory", "")?, false);
    read.ok().map(|(memory, _)| memory)
}

/// Memory and, with swap accounting, swap space.
fn memory(
    reader: &mut StatsDir<'_>,
    all: bool,
) -> Result<(MemoryStats, Option<SwapStats>), StatsError> {
    let mut memory = MemoryStats {
        usage: reader.number("memory.usage_in_bytes")?.unwrap_or_default(),
        ..MemoryStats::default()
    };
    let (mut inactive_file, mut swap) = (0, None);
    // Whether there may be a limit: the lowest of the cgroup and those above.
    let (mut is_limited, mut is_swap_limited) = (true, true);
    // The numbers with `total_` include descendant cgroups.
    for (name, value) in fields(reader.text("memory.stat")?) {
        match name {
            "total_inactive_file" => inactive_file = value,
            "total_rss" => memory.rss = value,
            "total_cache" => memory.cache = value,
            "total_mapped_file" => memory.mapped_file = value,
            "total_pgfault" => memory.page_faults = value,
            "total_pgmajfault" => memory.major_page_faults = value,
            "total_swap" => swap = Some(value),
            "hierarchical_memory_limit" => is_limited = value < NO_LIMIT,
            "hierarchical_memsw_limit" => is_swap_limited = value < NO_LIMIT,
            _ => {}
        }
    }
    memory.working_set = memory.usage.saturating_sub(inactive_file);
    let mut limit = |name: &str, is_set: bool| match is_set {
        true => Ok(reader.number(name)?.filter(|limit| *limit < NO_LIMIT)),
        false => Ok(None),
    };
    memory.limit = limit("memory.limit_in_bytes", is_limited)?;
    let swap = match swap {
        Some(usage) => {
            // Of memory and swap space together.
            let limit = limit("memory.memsw.limit_in_bytes", is_swap_limited)?;
            let limit = limit.map(|limit| limit.saturating_sub(memory.limit.unwrap_or_default()));
            Some(SwapStats { usage, limit })
        }
        None => None,
    };
    if !all {
        return Ok((memory, swap));
    }
    let mut number = |name: &str| reader.optional_number(name);
    memory.max_usage = number("memory.max_usage_in_bytes")?;
    memory.kernel = number("memory.kmem.usage_in_bytes")?.unwrap_or_default();
    memory.limit_hits = number("memory.failcnt")?.unwrap_or_default();
    for (name, value) in fields(reader.optional("memory.oom_control")?.unwrap_or_default()) {
        if name == "oom_kill" {
            memory.oom_kills = value;
        }
    }
    Ok((memory, swap))
}

fn hugetlb(reader: &mut StatsDir<'_>) -> Result<Vec<HugetlbStats>, StatsError> {
    let mut all = Vec::new();
    for page_size in page_sizes(&reader.path(), ".limit_in_bytes") {
        let usage = reader.number(&format!("hugetlb.{page_size}.usage_in_bytes"))?;
        let reserved = format!("hugetlb.{page_size}.rsvd.usage_in_bytes");
        let reserved = reader.optional_number(&reserved)?;
        let limit_hits = reader.optional_number(&format!("hugetlb.{page_size}.failcnt"))?;
        all.push(HugetlbStats {
            usage: usage.unwrap_or_default(),
            reserved,
            limit_hits: limit_hits.unwrap_or_default(),
            page_size,
        });
    }
    Ok(all)
}

fn io(reader: &mut StatsDir<'_>) -> Result<Vec<IoStats>, StatsError> {
    let mut all = Vec::new();
    let bytes = reader.optional("blkio.throttle.io_service_bytes_recursive")?;
    each(
        bytes.unwrap_or_default(),
        &mut all,
        |io, operation, value| match operation {
            "Read" => io.read_bytes = value,
            "Write" => io.write_bytes = value,
            _ => {}
        },
    );
    let operations = reader.optional("blkio.throttle.io_serviced_recursive")?;
    each(
        operations.unwrap_or_default(),
        &mut all,
        |io, operation, value| match operation {
            "Read" => io.reads = value,
            "Write" => io.writes = value,
            _ => {}
        },
    );
    Ok(all)
}

/// Parses lines such as `254:0 Read 4096`.
fn each(text: &str, all: &mut Vec<IoStats>, put: impl Fn(&mut IoStats, &str, u64)) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(operation), Some(value)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (Some((major, minor)), Ok(value)) = (device(name), value.parse()) else {
            continue;
        };
        let known = all
            .iter()
            .position(|io| (io.major, io.minor) == (major, minor));
        let index = known.unwrap_or_else(|| {
            all.push(IoStats {
                major,
                minor,
                ..IoStats::default()
            });
            all.len() - 1
        });
        put(&mut all[index], operation, value);
    }
}
