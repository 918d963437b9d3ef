//! Numbers that an example of a crate measures and prints: decisions without a runtime.

use anyhow::{Context, Result, bail};

use crate::{cargo, workspace};

/// Runs the release build of example `name` of `package`; returns the number that it prints.
pub(super) fn number(package: &str, name: &str) -> Result<f64> {
    let words = [
        "run",
        "--release",
        "--quiet",
        "--package",
        package,
        "--example",
        name,
    ];
    let output = cargo::command(&workspace::root()?, &words)
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the example `{name}` failed ({})", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim()
        .parse()
        .with_context(|| format!("the example `{name}` printed {text:?}"))
}
