//! Decisions without effects.

use anyhow::Result;

use super::{example, progress, report::Results};

/// Measures `plan_ns_p50` with the example of the crate that plans.
pub(super) fn measure(results: &mut Results) -> Result<()> {
    progress("plans of a pod with five containers");
    results.add(
        "plan_ns_p50",
        example::number("rubelet-pod-plan", "plan_ns")?,
    );
    Ok(())
}
