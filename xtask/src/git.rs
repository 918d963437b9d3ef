//! The checkout's state according to git.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rubelet_testbed::command::stdout_of;

/// A git command in the checkout at `root`; local times are in UTC.
pub(crate) fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root).env("TZ", "UTC");
    command
}

/// The output of such a command, trimmed.
///
/// # Errors
/// git is missing, or fails.
pub(crate) fn output(root: &Path, arguments: &[&str]) -> Result<String> {
    stdout_of(&mut command(root, arguments)).map(|text| text.trim().to_owned())
}
