//! Third-party programs that a run needs, installed once for all checkouts of a user.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rubelet_testbed::command::stdout_of;

use crate::cargo;

/// A program from crates.io.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool {
    /// The name of its package and of its program.
    pub(super) name: &'static str,
    /// The version that is installed where it is missing.
    pub(super) version: &'static str,
    /// The arguments that make it print `NAME VERSION`.
    pub(super) version_arguments: &'static [&'static str],
    /// Whether one on `PATH` of the same or a newer patch version is accepted.
    pub(super) from_path: bool,
}

impl Tool {
    /// The program, installed if it is missing, which takes some minutes.
    ///
    /// # Errors
    /// It can't be built.
    pub(super) fn ensure(self, root: &Path) -> Result<PathBuf> {
        if self.from_path && self.is_good(Path::new(self.name)) {
            return Ok(self.name.into());
        }
        let tools = directory()?;
        let program = tools.join("bin").join(self.name);
        if self.is_good(&program) {
            return Ok(program);
        }
        // An unoptimised build takes half the time and runs hardly slower.
        let options = ["install", "--debug", "--locked", "--force", "--root"];
        let mut install = cargo::command(root, &options);
        install
            .arg(&tools)
            .args([self.name, "--version", self.version]);
        cargo::run(&mut install).with_context(|| format!("cannot build {}", self.name))?;
        Ok(program)
    }

    fn is_good(self, program: &Path) -> bool {
        let found = stdout_of(Command::new(program).args(self.version_arguments));
        found.is_ok_and(|text| {
            let version = text.split_whitespace().nth(1);
            version.is_some_and(|version| is_patch_of(self.version, version))
        })
    }
}

/// Whether `found` is `wanted` or a later patch version of it.
fn is_patch_of(wanted: &str, found: &str) -> bool {
    let parts = |text: &str| {
        let (line, patch) = text.rsplit_once('.')?;
        Some((line.to_owned(), patch.parse::<u32>().ok()?))
    };
    match (parts(wanted), parts(found)) {
        (Some((line, least)), Some((other, patch))) => line == other && patch >= least,
        _ => false,
    }
}

/// A directory that outlives checkouts: `$XDG_CACHE_HOME/rubelet-tools`.
fn directory() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache
        .filter(|dir| dir.is_absolute())
        .or_else(home)
        .context("neither XDG_CACHE_HOME nor HOME is set, so there is no directory for tools")?;
    Ok(cache.join("rubelet-tools"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_later_patch_versions_are_accepted() {
        for (found, good) in [
            ("0.9.143", true),
            ("0.9.150", true),
            ("0.9.14", false),
            ("0.10.200", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_patch_of("0.9.143", found), good, "{found}");
        }
    }
}
