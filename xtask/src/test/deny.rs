//! Licences, bans, sources and known vulnerabilities of all dependencies, by cargo-deny.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rubelet_testbed::command::output_of;

use super::tools::Tool;
use crate::cargo;

/// deny.toml is written for this version.
const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    version_arguments: &["--version"],
    from_path: false,
};

/// Whether dependencies were compared with the advisory database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Advisories {
    /// They were, and no vulnerability is known.
    Checked,
    /// The database could not be fetched, for this reason.
    Skipped(String),
}

/// Runs all checks that are possible here.
///
/// # Errors
///
/// A dependency is not allowed, or cargo-deny can't be built.
pub(crate) fn check(root: &Path) -> Result<Advisories> {
    let program = DENY.ensure(root)?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(root);
        command
    };
    // The advisory database is a git repository, which not every machine can reach.
    let fetched = output_of(&mut deny(&["fetch", "db"]))?;
    if fetched.status.success() {
        cargo::run(&mut deny(&["check"]))?;
        return Ok(Advisories::Checked);
    }
    let reason = String::from_utf8_lossy(&fetched.stderr);
    let reason = last_line(&reason).to_owned();
    println!(
        "advisories: SKIPPED, because the database of known vulnerabilities could not be fetched \
         ({reason}); licences, bans and sources are checked"
    );
    cargo::run(&mut deny(&["check", "bans", "licenses", "sources"]))?;
    Ok(Advisories::Skipped(reason))
}

fn last_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or("it gave no reason")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_line_of_the_output() {
        assert_eq!(
            last_line("ERROR x\nfatal: could not resolve\n\n"),
            "fatal: could not resolve"
        );
        assert_eq!(last_line("\n"), "it gave no reason");
    }
}
