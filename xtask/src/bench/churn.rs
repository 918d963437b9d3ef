//! Creation and deletion of pods in a model cluster on a model runtime.

use anyhow::Result;

use super::{example, progress, report::Results};

/// Measures `churn_pods_per_s` with the example of the crate that talks to the API server.
pub(super) fn measure(results: &mut Results) -> Result<()> {
    progress("2000 pods that come and go");
    results.add(
        "churn_pods_per_s",
        example::number("rubelet-cluster", "churn")?,
    );
    Ok(())
}
