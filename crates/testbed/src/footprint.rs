//! What an embedded runtime has on the machine at one moment, one line a thing. Two of these are
//! equal when nothing was left behind in between.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::Embedded;
use crate::cleanup::{cgroups, mounts, network, nft, processes};

/// Folders of records and of half-done work, wherever they are below the root and the run folder:
/// what is in them belongs to pods.
const FOLDERS: [&str; 6] = [
    "attachments",
    "containers",
    "ingest",
    "results",
    "sandboxes",
    "snapshots",
];
/// How deep such folders are.
const DEPTH: usize = 3;

/// Everything that pods have caused, of the instance `embedded`: processes but for those in `own`,
/// mounts, cgroups, network interfaces, firewall rules, and files that stand for pods.
///
/// # Errors
/// When the machine can't be looked at.
pub fn of(embedded: &Embedded, own: &[u32]) -> Result<BTreeSet<String>> {
    let scratch = embedded.scratch();
    let mut found = BTreeSet::new();
    for pid in processes::of(scratch) {
        if !own.contains(&pid) {
            found.insert(format!("process {}", describe(pid)));
        }
    }
    for mount in mounts::below(scratch.dir())? {
        // A test may have given the runtime a disk of its own.
        if mount != embedded.root_dir() && mount != embedded.run_dir() {
            found.insert(format!("mount {}", mount.display()));
        }
    }
    for cgroup in cgroups::of(scratch.tag())? {
        // A pod's own cgroup is made and removed by who asks for the pod.
        let is_pods = cgroup
            .parent()
            .is_some_and(|top| top.ends_with(scratch.tag()));
        if !is_pods {
            found.insert(format!("cgroup {}", cgroup.display()));
        }
    }
    // The bridge is there from the first pod on.
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
        if FOLDERS.contains(&&*name) {
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
