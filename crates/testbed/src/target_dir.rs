//! Cargo's target directory, found from the running program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The file that cargo creates in each target directory.
const MARK: &str = "CACHEDIR.TAG";

/// The target directory of the running program.
///
/// # Errors
/// When the running program isn't inside a cargo target directory.
pub fn target() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("cannot find the running program")?;
    holder(&exe)
        .map(Path::to_path_buf)
        .with_context(|| format!("{} is not in a cargo target directory", exe.display()))
}

/// The directory of the running program's build profile, `target/debug` or `target/release`.
///
/// # Errors
/// As [`target`].
pub fn profile() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("cannot find the running program")?;
    let target = target()?;
    exe.ancestors()
        .find(|dir| dir.parent() == Some(&target))
        .map(Path::to_path_buf)
        .with_context(|| format!("{} has no profile directory", exe.display()))
}

/// The private cache of this crate below the target directory, created if missing.
///
/// # Errors
/// As [`target`], or when the directory can't be created.
pub fn cache() -> Result<PathBuf> {
    let dir = target()?.join("testbed");
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    Ok(dir)
}

fn holder(exe: &Path) -> Option<&Path> {
    exe.ancestors().skip(1).find(|dir| dir.join(MARK).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_finds_its_target_directories() {
        let target = target().unwrap();
        assert!(target.join(MARK).is_file());
        assert_eq!(profile().unwrap().parent(), Some(target.as_path()));
    }
}
