//! What git tells of the checkout.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rubelet_testbed::command::stdout_of;

/// A call of git in the checkout at `root`; it tells local times in UTC.
pub(crate) fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root).env("TZ", "UTC");
    command
}

/// What such a call prints, without the space around it.
///
/// # Errors
/// When git is missing, or ends badly.
pub(crate) fn output(root: &Path, arguments: &[&str]) -> Result<String> {
    stdout_of(&mut command(root, arguments)).map(|text| text.trim().to_owned())
}
