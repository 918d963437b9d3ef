//! Runs cargo.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rubelet_testbed::command::line;
use rubelet_testbed::target_dir;

/// The cargo that runs this program.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A cargo command in the workspace, with an empty standard input.
pub(crate) fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null());
    command
}

/// The agent to run: `RUBELET_BIN`, else the workspace's, built now.
pub(crate) fn agent(root: &Path, release: bool) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("RUBELET_BIN") {
        return Ok(PathBuf::from(path));
    }
    let mut build = command(root, &["build", "--package", "rubelet"]);
    if release {
        build.arg("--release");
    }
    run(&mut build)?;
    let profile = if release { "release" } else { "debug" };
    Ok(target_dir::target()?.join(profile).join("rubelet"))
}

/// Runs a command until it exits; its output goes to standard error, so that standard output
/// contains only results.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let text = line(command);
    let status = command
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .with_context(|| format!("cannot start `{text}`"))?;
    if !status.success() {
        bail!("`{text}` failed ({status})");
    }
    Ok(())
}
