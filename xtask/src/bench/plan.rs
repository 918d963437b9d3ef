//! Decisions alone.

use anyhow::{Context, Result, bail};

use super::{progress, report::Results};
use crate::{cargo, workspace};

/// Measures `plan_ns_p50` with the example of the crate that plans.
pub(super) fn measure(results: &mut Results) -> Result<()> {
    progress("plans of a pod with five containers");
    let words = [
        "run",
        "--release",
        "--quiet",
        "--package",
        "rubelet-pod-plan",
        "--example",
        "plan_ns",
    ];
    let output = cargo::command(&workspace::root()?, &words)
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the example `plan_ns` failed ({})", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let nanoseconds = text
        .trim()
        .parse()
        .with_context(|| format!("the example `plan_ns` printed {text:?}"))?;
    results.add("plan_ns_p50", nanoseconds);
    Ok(())
}
