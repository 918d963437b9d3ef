//! Where cargo puts what it builds, found from the running program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The file that cargo puts at the top of each target folder.
const MARK: &str = "CACHEDIR.TAG";

/// The target folder that holds the running program.
///
/// # Errors
/// When the running program isn't inside a cargo target folder.
pub fn target() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("cannot find the running program")?;
    holder(&exe)
        .map(Path::to_path_buf)
        .with_context(|| format!("{} is in no cargo target folder", exe.display()))
}

/// The folder of the running program's build profile, `target/debug` or `target/release`.
///
/// # Errors
/// As [`target`].
pub fn profile() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("cannot find the running program")?;
    let target = target()?;
    exe.ancestors()
        .find(|dir| dir.parent() == Some(&target))
        .map(Path::to_path_buf)
        .with_context(|| format!("{} has no profile folder", exe.display()))
}

/// The private cache of this crate below the target folder, created if missing.
///
/// # Errors
/// As [`target`], or when the folder can't be created.
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
    fn a_test_program_finds_its_own_target_and_profile_folder() {
        let target = target().unwrap();
        assert!(target.join(MARK).is_file());
        assert_eq!(profile().unwrap().parent(), Some(target.as_path()));
    }
}
