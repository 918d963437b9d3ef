//! Resources of an embedded runtime on the machine at one moment, one line each. Two of these are
//! equal if nothing was left behind in between.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::cleanup::{cgroups, mounts, network, nft, processes};
use crate::{CgroupDriver, Embedded};

/// Directories of records and of incomplete work, anywhere below the root and the run directory:
/// their contents belong to pods.
const DIRECTORIES: [&str; 6] = [
    "attachments",
    "containers",
    "ingest",
    "results",
    "sandboxes",
    "snapshots",
];
/// How deep such directories are.
const DEPTH: usize = 3;

/// Everything that pods have caused in the instance `embedded`: processes except those in `own`,
/// mounts, cgroups, network interfaces, firewall rules, and files that represent pods.
///
/// # Errors
/// The machine can't be inspected.
pub fn of(embedded: &Embedded, own: &[u32]) -> Result<BTreeSet<String>> {
    let scratch = embedded.scratch();
    let mut found = BTreeSet::new();
    for pid in processes::of(scratch) {
        if !own.contains(&pid) {
            found.insert(format!("process {}", describe(pid)));
        }
    }
    for mount in mounts::below(scratch.dir())? {
        // A test may have given the runtime its own disk.
        if mount != embedded.root_dir() && mount != embedded.run_dir() {
            found.insert(format!("mount {}", mount.display()));
        }
    }
    let tops = CgroupDriver::ALL.map(|driver| driver.directory(scratch.tag()));
    for cgroup in cgroups::of(scratch.tag())? {
        // A pod's own cgroup is created and removed by the client of the runtime, or stays with systemd.
        let is_pods = cgroup
            .parent()
            .is_some_and(|parent| tops.iter().any(|top| parent.ends_with(top)));
        if !is_pods {
            found.insert(format!("cgroup {}", cgroup.display()));
        }
    }
    // The bridge exists from the first pod on.
    let links = network::links_of(scratch).into_iter();
    found.extend(
        links
            .filter(|link| *link != scratch.bridge())
            .map(|link| format!("network interface {link}")),
    );
    found.extend(nft::elements_of(&scratch.bridge())?);
    for top in [embedded.root_dir(), embedded.run_dir()] {
        collect(&top, DEPTH, &mut found);
    }
    Ok(found)
}

fn collect(dir: &Path, depth: usize, found: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if DIRECTORIES.contains(&&*name) {
            let inside = std::fs::read_dir(&path).into_iter().flatten();
            let inside = inside.filter_map(|entry| Some(entry.ok()?.path()));
            found.extend(inside.map(|path| format!("file {}", path.display())));
        } else if depth > 0 && path.is_dir() && !path.is_symlink() {
            collect(&path, depth - 1, found);
        }
    }
}

fn describe(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    format!("{pid} {line}")
}
