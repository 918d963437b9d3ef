//! Memory and swap space. Version 1 limits memory, and memory and swap together; version 2 limits
//! memory, and swap alone.

use rubelet_oci::Memory;

use crate::cgroup::write::{WriteError, Writer};

const NO_MEMSW: &str = "the kernel does not account swap space (swapaccount=1 on its command line)";

/// A number of version 1 in the kernel's format: -1 removes a limit.
fn text_v1(bytes: i64) -> String {
    bytes.max(-1).to_string()
}

fn text_v2(bytes: i64) -> String {
    match bytes {
        bytes if bytes < 0 => "max".to_owned(),
        bytes => bytes.to_string(),
    }
}

pub(super) fn apply_v1(writer: &mut Writer<'_>, memory: Memory) {
    let limit = memory.limit.filter(|limit| *limit != 0);
    // The limit of memory alone can't exceed that of memory and swap together.
    let swap = match (limit, memory.swap.filter(|swap| *swap != 0)) {
        (Some(limit), None) if limit < 0 => Some(-1),
        (_, swap) => swap,
    };
    if is_above_use(writer, memory, "memory.usage_in_bytes") {
        return;
    }
    const LIMIT: &str = "memory.limit_in_bytes";
    const TOGETHER: &str = "memory.memsw.limit_in_bytes";
    match (limit, swap) {
        (Some(limit), Some(swap)) => {
            let in_force = writer.read("memory", TOGETHER);
            let in_force: Option<i64> = in_force.and_then(|text| text.trim().parse().ok());
            let Some(in_force) = in_force else {
                writer.write("memory", LIMIT, &text_v1(limit));
                // Without swap accounting, the usual values describe what happens anyway.
                if swap >= 0 && swap != limit {
                    writer.refuse("memory.swap", &swap.to_string(), NO_MEMSW);
                }
                return;
            };
            // The limit of memory alone must never exceed that of both together.
            let is_raise = limit < 0 || limit > in_force;
            if is_raise {
                writer.write("memory", TOGETHER, &text_v1(swap));
                writer.write("memory", LIMIT, &text_v1(limit));
            } else {
                writer.write("memory", LIMIT, &text_v1(limit));
                writer.write("memory", TOGETHER, &text_v1(swap));
            }
        }
        (Some(limit), None) => writer.write("memory", LIMIT, &text_v1(limit)),
        (None, Some(swap)) => writer.write("memory", TOGETHER, &text_v1(swap)),
        (None, None) => {}
    }
    if let Some(reservation) = memory.reservation.filter(|bytes| *bytes != 0) {
        writer.write(
            "memory",
            "memory.soft_limit_in_bytes",
            &text_v1(reservation),
        );
    }
}

pub(super) fn apply_v2(writer: &mut Writer<'_>, memory: Memory) {
    if is_above_use(writer, memory, "memory.current") {
        return;
    }
    let limit = memory.limit.filter(|limit| *limit != 0);
    let swap = memory.swap.filter(|swap| *swap != 0);
    let swap = match swap_v2(writer, limit, swap) {
        Ok(swap) => swap,
        Err(why) => {
            writer.refuse("memory.swap", &swap.unwrap_or_default().to_string(), &why);
            None
        }
    };
    if let Some(swap) = swap {
        match writer.attempt("memory", "memory.swap.max", &text_v2(swap)) {
            Ok(()) => {}
            // Without swap accounting, the usual values describe what happens anyway.
            Err(WriteError::NoController { .. }) if swap <= 0 => {}
            Err(error) => writer.push(error),
        }
    }
    if let Some(limit) = limit {
        writer.write("memory", "memory.max", &text_v2(limit));
    }
    if let Some(reservation) = memory.reservation.filter(|bytes| *bytes != 0) {
        writer.write("memory", "memory.low", &text_v2(reservation));
    }
}

/// The limit of swap alone, from that of both together.
fn swap_v2(
    writer: &Writer<'_>,
    limit: Option<i64>,
    swap: Option<i64>,
) -> Result<Option<i64>, String> {
    let both = match (limit, swap) {
        // As on version 1: without a memory limit there is no combined limit either.
        (Some(limit), None) if limit < 0 => return Ok(Some(-1)),
        (_, None) => return Ok(None),
        (_, Some(both)) if both < 0 => return Ok(Some(-1)),
        (_, Some(both)) => both,
    };
    let in_force = || writer.read("memory", "memory.max")?.trim().parse().ok();
    match limit.or_else(in_force) {
        Some(limit) if limit > both => Err(format!(
            "memory and swap together cannot have less than memory alone, which has {limit}"
        )),
        Some(limit) if limit >= 0 => Ok(Some(both - limit)),
        _ => Err("it needs a limit of memory beside it".to_owned()),
    }
}

/// Whether the new limit would have to be enforced by OOM kills, if that is to be rejected.
fn is_above_use(writer: &mut Writer<'_>, memory: Memory, file: &str) -> bool {
    let Some(limit) = memory.limit.filter(|limit| *limit > 0) else {
        return false;
    };
    if memory.check_before_update != Some(true) {
        return false;
    }
    let used = writer.read("memory", file);
    match used.and_then(|text| text.trim().parse::<i64>().ok()) {
        Some(used) if used > limit => {
            let why = format!("{used} bytes are in use");
            writer.refuse("memory.limit", &limit.to_string(), &why);
            true
        }
        _ => false,
    }
}
