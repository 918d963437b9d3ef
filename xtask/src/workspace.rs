//! Where the workspace is.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder of the workspace's Cargo.toml. Cargo tells it to the programs that it runs.
pub(crate) fn root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("run this with `cargo xtask`, which tells it where the workspace is")?;
    let root = Path::new(&package)
        .parent()
        .context("the package is at the root of the disk")?;
    Ok(root.to_path_buf())
}
