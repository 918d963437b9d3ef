//! The cgroups of an instance, in each hierarchy of this machine, of version 1 and 2, directories and slices alike.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cgroup_driver::CgroupDriver;
use crate::command::stdout_of;
use crate::scratch::PREFIX;
use crate::wait;

/// How long the kernel may take to release a cgroup whose processes have exited.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(60);
/// How the names of slices end.
const SLICE: &str = ".slice";

/// All cgroup directories of instance `tag`, parents before children.
///
/// # Errors
/// When the kernel's mount table can't be read.
pub fn of(tag: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for top in directories(tag)? {
        collect(&top, &mut found);
    }
    Ok(found)
}

/// The directories of the cgroup with this path below that of instance `tag`, such as `kubepods/besteffort`: one in each
/// hierarchy that has it, none if it does not exist.
///
/// # Errors
/// When the kernel's mount table can't be read.
pub fn at(tag: &str, path: &str) -> Result<Vec<PathBuf>> {
    directories(&format!("{tag}/{path}"))
}

/// Those that exist, made by either driver.
fn directories(path: &str) -> Result<Vec<PathBuf>> {
    let hierarchies = hierarchies()?;
    let of_drivers = CgroupDriver::ALL.map(|driver| driver.directory(path));
    let all = hierarchies
        .iter()
        .flat_map(|hierarchy| of_drivers.iter().map(|path| hierarchy.join(path)));
    Ok(all.filter(|directory| directory.is_dir()).collect())
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
        found.extend(names.filter_map(|name| tag_of(&name)));
    }
    Ok(found)
}

/// The instance whose top cgroup has this name.
fn tag_of(name: &str) -> Option<String> {
    if let Some(slice) = name.strip_suffix(SLICE) {
        let own = slice.strip_prefix(&PREFIX.replace('-', "_"))?;
        return Some(format!("{PREFIX}{own}"));
    }
    name.starts_with(PREFIX).then(|| name.to_owned())
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

/// Creates the top cgroup of an instance, or one below it, in each hierarchy, by the driver of the test. `path` is the
/// tag, or begins with it.
///
/// # Errors
/// When a directory can't be created, or systemd does not start a slice.
pub fn create(path: &str) -> Result<()> {
    let driver = CgroupDriver::wanted()?;
    let directory = driver.directory(path);
    if driver == CgroupDriver::Systemd {
        let slice = Path::new(&directory).file_name().unwrap_or_default();
        return stdout_of(Command::new("systemctl").arg("start").arg(slice)).map(drop);
    }
    for hierarchy in hierarchies()? {
        let directory = hierarchy.join(&directory);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create the cgroup {}", directory.display()))?;
    }
    Ok(())
}

/// Removes all cgroups of instance `tag`; its processes must have been killed before.
///
/// # Errors
/// When one is still in use after a minute, or systemd does not stop the slice.
pub fn remove(tag: &str) -> Result<()> {
    let slice = CgroupDriver::Systemd.directory(tag);
    if directories(tag)?.iter().any(|top| top.ends_with(&slice)) {
        // Those inside of it are stopped with it. systemd would take it for one that exists if only its directory went.
        stdout_of(Command::new("systemctl").arg("stop").arg(&slice))?;
    }
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

    #[test]
    fn instances_are_found_by_their_directory_and_their_slice() {
        for name in ["rubelet-tAbCdEf", "rubelet_tAbCdEf.slice"] {
            assert_eq!(tag_of(name).as_deref(), Some("rubelet-tAbCdEf"), "{name}");
        }
        for name in ["rubelet", "rubelet.slice", "system.slice", "rubelet_tAbC"] {
            assert_eq!(tag_of(name), None, "{name}");
        }
    }
}
