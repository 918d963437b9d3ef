//! Statistics of version 1: each controller has its own directory, or none.

use rubelet_cgroup_plan::CgroupPath;

use super::{
    CgroupFs, CgroupStats, CpuStats, HugetlbStats, IoStats, MemoryStats, StatsError, StatsScope,
    SwapStats,
    read::{Reader, device, fields, page_sizes},
};

/// Version 1 reports an unset limit as a number of pages that no machine has.
const NO_LIMIT: u64 = 1 << 60;

pub(super) fn stats(
    fs: &CgroupFs,
    path: &CgroupPath,
    scope: StatsScope,
) -> Result<CgroupStats, StatsError> {
    let all = scope == StatsScope::All;
    let reader = |name: &str| fs.controller_dir(name, path).map(Reader::new);
    let mut stats = CgroupStats::default();
    if let Some(mut accounting) = reader("cpuacct") {
        let mut cpu = CpuStats {
            usage_ns: accounting.number("cpuacct.usage")?.unwrap_or_default(),
            ..CpuStats::default()
        };
        if all {
            parts(&mut accounting, &mut cpu)?;
            if let Some(mut quota) = reader("cpu") {
                throttling(&mut quota, &mut cpu)?;
            }
        }
        stats.cpu = Some(cpu);
    }
    let several = |name: &str| fs.controller_dir(name, path).map(Reader::open);
    if let Some(mut reader) = several("memory") {
        let memory = memory(&mut reader, all)?;
        stats.swap = swap(&mut reader, &memory)?;
        stats.memory = Some(memory);
    }
    if let Some(mut reader) = reader("pids") {
        stats.pids = Some(reader.pids(scope)?);
    }
    if !all {
        return Ok(stats);
    }
    if let Some(mut reader) = several("hugetlb") {
        stats.hugetlb = hugetlb(&mut reader)?;
    }
    if let Some(mut reader) = reader("blkio") {
        stats.io = io(&mut reader)?;
    }
    Ok(stats)
}

/// The parts of the CPU time.
fn parts(reader: &mut Reader, cpu: &mut CpuStats) -> Result<(), StatsError> {
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

fn throttling(reader: &mut Reader, cpu: &mut CpuStats) -> Result<(), StatsError> {
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
    let found = fs.hierarchies.iter().find(|one| one.has("memory"))?;
    memory(&mut Reader::new(found.mount.clone()), false).ok()
}

fn memory(reader: &mut Reader, all: bool) -> Result<MemoryStats, StatsError> {
    let limit = reader.number("memory.limit_in_bytes")?;
    let mut memory = MemoryStats {
        usage: reader.number("memory.usage_in_bytes")?.unwrap_or_default(),
        limit: limit.filter(|limit| *limit < NO_LIMIT),
        ..MemoryStats::default()
    };
    let mut inactive_file = 0;
    // The numbers with `total_` include descendant cgroups.
    for (name, value) in fields(reader.text("memory.stat")?) {
        match name {
            "total_inactive_file" => inactive_file = value,
            "total_rss" => memory.rss = value,
            "total_cache" => memory.cache = value,
            "total_mapped_file" => memory.mapped_file = value,
            "total_pgfault" => memory.page_faults = value,
            "total_pgmajfault" => memory.major_page_faults = value,
            _ => {}
        }
    }
    memory.working_set = memory.usage.saturating_sub(inactive_file);
    if !all {
        return Ok(memory);
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
    Ok(memory)
}

/// Version 1 counts memory and swap space together.
fn swap(reader: &mut Reader, memory: &MemoryStats) -> Result<Option<SwapStats>, StatsError> {
    let Some(together) = reader.optional_number("memory.memsw.usage_in_bytes")? else {
        return Ok(None);
    };
    let limit = reader.optional_number("memory.memsw.limit_in_bytes")?;
    let limit = limit.filter(|limit| *limit < NO_LIMIT);
    Ok(Some(SwapStats {
        usage: together.saturating_sub(memory.usage),
        limit: limit.map(|limit| limit.saturating_sub(memory.limit.unwrap_or_default())),
    }))
}

fn hugetlb(reader: &mut Reader) -> Result<Vec<HugetlbStats>, StatsError> {
    let mut all = Vec::new();
    for page_size in page_sizes(reader.dir(), ".limit_in_bytes") {
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

fn io(reader: &mut Reader) -> Result<Vec<IoStats>, StatsError> {
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
