//! A relist that finds nothing new.

use anyhow::Result;

use super::{example, progress, report::Results};

/// Measures `reconcile_us_1000` with the example of the crate that relists.
pub(super) fn measure(results: &mut Results) -> Result<()> {
    progress("relists of 1000 pods with 3000 containers");
    results.add(
        "reconcile_us_1000",
        example::number("rubelet-pleg", "reconcile_us")?,
    );
    Ok(())
}
