//! Licences, bans, sources and known vulnerabilities of all dependencies, by cargo-deny.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rubelet_testbed::command::{output_of, stdout_of};
use rubelet_testbed::target_dir;

use crate::cargo;

/// The version that deny.toml is written for.
const VERSION: &str = "0.20.2";

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
    let program = ensure(root)?;
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

/// cargo-deny in the target directory; built there if it is missing, which takes some minutes.
fn ensure(root: &Path) -> Result<PathBuf> {
    let tools = target_dir::target()?.join("tools");
    let program = tools.join("bin/cargo-deny");
    let found = stdout_of(Command::new(&program).arg("--version"));
    if found.is_ok_and(|text| text.trim() == format!("cargo-deny {VERSION}")) {
        return Ok(program);
    }
    // An unoptimised build takes half the time and checks hardly slower.
    let options = ["install", "--debug", "--locked", "--force", "--root"];
    let mut install = cargo::command(root, &options);
    install
        .arg(&tools)
        .args(["cargo-deny", "--version", VERSION]);
    cargo::run(&mut install).context("cannot build cargo-deny")?;
    Ok(program)
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
    fn the_reason_is_the_last_thing_that_was_said() {
        assert_eq!(
            last_line("ERROR x\nfatal: could not resolve\n\n"),
            "fatal: could not resolve"
        );
        assert_eq!(last_line("\n"), "it gave no reason");
    }
}
