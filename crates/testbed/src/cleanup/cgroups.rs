//! The cgroups of an instance, in each hierarchy of this machine, of version 1 and 2 alike.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::scratch::PREFIX;
use crate::wait;

/// How long the kernel may take to release a cgroup whose processes have exited.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(60);

/// All cgroup directories of instance `tag`, parents before children.
///
/// # Errors
/// When the kernel's mount table can't be read.
pub fn of(tag: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for hierarchy in hierarchies()? {
        let top = hierarchy.join(tag);
        if top.is_dir() {
            collect(&top, &mut found);
        }
    }
    Ok(found)
}

/// Names of all instances that have cgroups.
///
/// # Errors
/// When the kernel's mount table can't be read.
pub(crate) fn tags() -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for hierarchy in hierarchies()? {
        let Ok(entries) = std::fs::read_dir(hierarchy) else {
            continue;
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        found.extend(names.filter(|name| name.starts_with(PREFIX)));
    }
    Ok(found)
}

/// The processes in the cgroups of instance `tag`.
#[must_use]
pub fn members(tag: &str) -> BTreeSet<u32> {
    let directories = of(tag).unwrap_or_default();
    directories
        .iter()
        .filter_map(|directory| std::fs::read_to_string(directory.join("cgroup.procs")).ok())
        .flat_map(|text| {
            text.lines()
                .filter_map(|line| line.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Thaws the processes of instance `tag`, because a frozen process can't exit.
pub(crate) fn thaw(tag: &str) {
    for directory in of(tag).unwrap_or_default() {
        for (file, text) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
            let path = directory.join(file);
            if path.exists() {
                // A failed thaw shows as a process that does not exit.
                let _ = std::fs::write(path, text);
            }
        }
    }
}

/// Creates the top cgroup of an instance, or one below it, in each hierarchy. `path` is the tag, or
/// begins with it.
///
/// # Errors
/// When a directory can't be created.
pub fn create(path: &str) -> Result<()> {
    for hierarchy in hierarchies()? {
        let directory = hierarchy.join(path);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create the cgroup {}", directory.display()))?;
    }
    Ok(())
}

/// Removes all cgroups of instance `tag`; its processes must have been killed before.
///
/// # Errors
/// When one is still in use after five seconds.
pub fn remove(tag: &str) -> Result<()> {
    wait::until(
        &format!("the cgroups of {tag} are empty"),
        EMPTY_TIMEOUT,
        || {
            for directory in of(tag)?.iter().rev() {
                // A cgroup is still busy for a moment after its last process exited.
                let _ = std::fs::remove_dir(directory);
            }
            Ok(of(tag)?.is_empty().then_some(()))
        },
    )
}

fn hierarchies() -> Result<Vec<PathBuf>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")
        .context("cannot read /proc/self/mountinfo")?;
    Ok(table.lines().filter_map(cgroup_mount).collect())
}

fn cgroup_mount(line: &str) -> Option<PathBuf> {
    let (mount, source) = line.split_once(" - ")?;
    matches!(source.split(' ').next()?, "cgroup" | "cgroup2")
        .then(|| mount.split(' ').nth(4).map(PathBuf::from))?
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    found.push(dir.to_path_buf());
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_hierarchies_of_both_versions_are_found() {
        for (line, found) in [
            (
                "30 28 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
                Some("/sys/fs/cgroup/cpu"),
            ),
            (
                "31 28 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw",
                Some("/sys/fs/cgroup"),
            ),
            ("28 27 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw", None),
        ] {
            assert_eq!(cgroup_mount(line), found.map(PathBuf::from), "{line}");
        }
    }
}
