//! Statistics of version 2.

use rubelet_cgroup_plan::CgroupPath;

use super::{
    CgroupStats, CpuStats, HugetlbStats, IoStats, MemoryStats, Pressure, PsiStats, StatsError,
    StatsScope, SwapStats,
    read::{StatsDir, StatsReader, device, fields, page_sizes},
};

pub(super) fn stats(
    reader: &mut StatsReader<'_>,
    path: &CgroupPath,
    scope: StatsScope,
) -> Result<CgroupStats, StatsError> {
    let all = scope >= StatsScope::Counters;
    let dir = reader.dir("memory", path.relative());
    let dir = dir.ok_or_else(|| StatsError::NoController {
        path: path.clone(),
        controller: "memory",
    })?;
    let mut reader = dir.open();
    let mut stats = CgroupStats {
        // Exists for every cgroup; with the controller it also has the numbers of the quota.
        cpu: Some(cpu(&mut reader)?),
        psi: PsiStats {
            cpu: pressure(&mut reader, "cpu.pressure")?,
            memory: pressure(&mut reader, "memory.pressure")?,
            io: pressure(&mut reader, "io.pressure")?,
        },
        ..CgroupStats::default()
    };
    // What the cgroup has no controller for has no files.
    if let Some(usage) = reader.optional_number("memory.current")? {
        stats.memory = Some(memory(&mut reader, usage, all)?);
        stats.swap = swap(&mut reader)?;
    }
    if scope != StatsScope::Usage {
        stats.pids = reader.pids(scope)?;
    }
    if !all {
        return Ok(stats);
    }
    let controllers = reader.text("cgroup.controllers")?.to_owned();
    let has = |name: &str| controllers.split_whitespace().any(|own| own == name);
    if scope == StatsScope::All && has("hugetlb") {
        stats.hugetlb = hugetlb(&mut reader)?;
    }
    if has("io") {
        stats.io = io(&mut reader)?;
    }
    Ok(stats)
}

fn cpu(reader: &mut StatsDir<'_>) -> Result<CpuStats, StatsError> {
    let mut cpu = CpuStats::default();
    for (name, value) in fields(reader.text("cpu.stat")?) {
        let nanos = value.saturating_mul(1000);
        match name {
            "usage_usec" => cpu.usage_ns = nanos,
            "user_usec" => cpu.user_ns = nanos,
            "system_usec" => cpu.system_ns = nanos,
            "nr_periods" => cpu.periods = value,
            "nr_throttled" => cpu.throttled_periods = value,
            "throttled_usec" => cpu.throttled_ns = nanos,
            _ => {}
        }
    }
    Ok(cpu)
}

fn memory(reader: &mut StatsDir<'_>, usage: u64, all: bool) -> Result<MemoryStats, StatsError> {
    let mut memory = MemoryStats {
        usage,
        limit: reader.number("memory.max")?,
        ..MemoryStats::default()
    };
    let mut inactive_file = 0;
    for (name, value) in fields(reader.text("memory.stat")?) {
        match name {
            "inactive_file" => inactive_file = value,
            "anon" => memory.rss = value,
            "file" => memory.cache = value,
            "file_mapped" => memory.mapped_file = value,
            "kernel" => memory.kernel = value,
            "pgfault" => memory.page_faults = value,
            "pgmajfault" => memory.major_page_faults = value,
            _ => {}
        }
    }
    memory.working_set = memory.usage.saturating_sub(inactive_file);
    if !all {
        return Ok(memory);
    }
    memory.max_usage = reader.optional_number("memory.peak")?;
    for (name, value) in fields(reader.text("memory.events")?) {
        match name {
            "max" => memory.limit_hits = value,
            "oom_kill" => memory.oom_kills = value,
            _ => {}
        }
    }
    Ok(memory)
}

fn swap(reader: &mut StatsDir<'_>) -> Result<Option<SwapStats>, StatsError> {
    let Some(usage) = reader.optional_number("memory.swap.current")? else {
        return Ok(None);
    };
    let limit = reader.optional_number("memory.swap.max")?;
    Ok(Some(SwapStats { usage, limit }))
}

fn hugetlb(reader: &mut StatsDir<'_>) -> Result<Vec<HugetlbStats>, StatsError> {
    let mut all = Vec::new();
    for page_size in page_sizes(&reader.path(), ".max") {
        let usage = reader.number(&format!("hugetlb.{page_size}.current"))?;
        let reserved = reader.optional_number(&format!("hugetlb.{page_size}.rsvd.current"))?;
        let events = reader.optional(&format!("hugetlb.{page_size}.events"))?;
        let limit_hits = events.and_then(|text| fields(text).find(|(name, _)| *name == "max"));
        all.push(HugetlbStats {
            usage: usage.unwrap_or_default(),
            reserved,
            limit_hits: limit_hits.map_or(0, |(_, hits)| hits),
            page_size,
        });
    }
    Ok(all)
}

fn io(reader: &mut StatsDir<'_>) -> Result<Vec<IoStats>, StatsError> {
    let text = reader.optional("io.stat")?.unwrap_or_default();
    let line = |line: &str| {
        let (name, values) = line.split_once(' ')?;
        let (major, minor) = device(name)?;
        let mut io = IoStats {
            major,
            minor,
            ..IoStats::default()
        };
        for (name, value) in values
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
        {
            let value = value.parse().unwrap_or_default();
            match name {
                "rbytes" => io.read_bytes = value,
                "wbytes" => io.write_bytes = value,
                "rios" => io.reads = value,
                "wios" => io.writes = value,
                _ => {}
            }
        }
        Some(io)
    };
    Ok(text.lines().filter_map(line).collect())
}

fn pressure(reader: &mut StatsDir<'_>, name: &str) -> Result<Option<Pressure>, StatsError> {
    Ok(reader.optional(name)?.and_then(Pressure::parse))
}
