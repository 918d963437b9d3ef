//! The location of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rubelet_testbed::command::stdout_of;
use serde_json::Value;

use crate::cargo;

/// The directory of the workspace's Cargo.toml. Cargo passes it to the programs that it runs.
pub(crate) fn root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("run this with `cargo xtask`, which tells it where the workspace is")?;
    let root = Path::new(&package)
        .parent()
        .context("the package is at the root of the disk")?;
    Ok(root.to_path_buf())
}

/// cargo's metadata of the workspace's crates.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let mut metadata = Command::new(cargo::program());
    metadata
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root);
    serde_json::from_str(&stdout_of(&mut metadata)?).context("cargo metadata printed no JSON")
}
