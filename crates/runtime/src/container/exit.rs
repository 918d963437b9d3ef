//! Exits of containers, as the shim reports them.

use rubelet_runtime_plan::record::ExitRecord;

use crate::clock;

/// Converts the shim's exit record.
pub(crate) fn from_shim(exit: &rubelet_shim::ExitRecord) -> ExitRecord {
    let at = match time(exit.at_ns) {
        0 => clock::now_ns(),
        at => at,
    };
    ExitRecord::seen(
        exit.exit_code,
        exit.signal.unwrap_or(0),
        at,
        exit.oom_killed,
    )
}

/// The shim's times are unsigned, those of the CRI signed.
pub(crate) fn time(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
