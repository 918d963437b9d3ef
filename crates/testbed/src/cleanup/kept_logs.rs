//! Logs of agents and runtimes that outlive their instance, for the reader of a failed test.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::OFlags;

use crate::scratch::Scratch;

/// The environment variable with the directory in which logs are kept; without it no logs are kept.
pub const VARIABLE: &str = "RUBELET_TEST_LOGS";
/// Maximum size of the kept end of a log, in bytes.
const MOST: u64 = 4 << 20;
/// Levels of directories below the instance's that hold logs of its own programs.
const DEPTH: usize = 3;

/// The directory below `base` for the logs of a test.
#[must_use]
pub fn directory(base: &Path, binary: &str, test: &str) -> PathBuf {
    base.join(binary.replace('/', "_"))
        .join(test.replace('/', "_"))
}

/// Copies the logs of an instance that is about to be removed, if requested.
///
/// # Errors
/// When one can't be copied.
pub(super) fn keep(scratch: &Scratch) -> Result<()> {
    let Some(base) = std::env::var_os(VARIABLE) else {
        return Ok(());
    };
    let (binary, test) =
        rubelet_needs::running_test().unwrap_or_else(|| ("other".into(), "other".into()));
    let to = directory(Path::new(&base), &binary, &test).join(scratch.tag());
    let mut found = Vec::new();
    logs(scratch.dir(), DEPTH, &mut found);
    for log in found {
        let inside = log.strip_prefix(scratch.dir()).unwrap_or(&log);
        copy(&log, &to.join(inside)).with_context(|| format!("cannot keep {}", log.display()))?;
    }
    Ok(())
}

fn logs(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        // Symbolic links are neither.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            logs(&path, depth - 1, found);
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "log") {
            found.push(path);
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut log = File::from(rustix::fs::open(from, flags, rustix::fs::Mode::empty())?);
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::io::copy(&mut log.take(MOST), &mut File::create(to)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_found_and_their_end_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b/c/d")).unwrap();
        for name in ["one.log", "a/b/c/two.log", "a/b/c/d/deep.log", "a/other"] {
            std::fs::write(at(name), name).unwrap();
        }
        std::os::unix::fs::symlink(at("one.log"), at("link.log")).unwrap();
        let mut found = Vec::new();
        logs(dir.path(), DEPTH, &mut found);
        found.sort();
        assert_eq!(found, [at("a/b/c/two.log"), at("one.log")]);

        let size = usize::try_from(MOST).unwrap();
        std::fs::write(at("one.log"), ["x".repeat(size), "end".into()].concat()).unwrap();
        copy(&at("one.log"), &at("kept/one.log")).unwrap();
        let kept = std::fs::read_to_string(at("kept/one.log")).unwrap();
        assert_eq!(kept.len(), size);
        assert!(kept.ends_with("end"));
    }

    #[test]
    fn each_test_has_its_own_directory() {
        assert_eq!(
            directory(Path::new("/logs"), "a::bin/b", "c::d"),
            Path::new("/logs/a::bin_b/c::d")
        );
    }
}
