//! Leftovers of earlier runs. The start removes them; while a runtime runs, there should be none.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::runtime_cgroup::sandbox_of;
use rubelet_host::{CgroupFs, mountinfo};

use super::{Finding, Severity};
use crate::{RuntimeSettings, identifier::is_identifier, layout::Layout, recover::shims};

const REMEDY: &str = "restart rubelet: the runtime removes it at the start";

pub(super) fn find(settings: &RuntimeSettings) -> Vec<Finding> {
    let layout = Layout::new(&settings.root, &settings.run);
    let sandboxes = records(&layout.sandbox_records());
    let containers = records(&layout.container_records());
    let mut findings = damaged(&[layout.sandbox_records(), layout.container_records()]);

    for id in names(&layout.sandboxes()).difference(&sandboxes) {
        findings.push(leftover(
            format!(
                "{} belongs to no sandbox",
                layout.sandbox(id).path().display()
            ),
            "it may hold namespaces, mounts and processes",
        ));
    }
    for id in names(&layout.root().join("snapshots")).difference(&containers) {
        findings.push(leftover(
            format!("the root file system {id} belongs to no container"),
            "it uses disk space",
        ));
    }
    let on_network = records(&settings.network.state_dir.join("attachments"));
    for id in on_network.difference(&sandboxes) {
        findings.push(leftover(
            format!("the IP addresses of the sandbox {id} are still allocated"),
            "the sandbox does not exist, and no pod can get these addresses",
        ));
    }
    for entry in mountinfo::read().unwrap_or_default() {
        let below = entry.mount_point.strip_prefix(layout.sandboxes()).ok();
        let id = below.and_then(|path| path.iter().next()?.to_str());
        if id.is_some_and(|id| !sandboxes.contains(id)) {
            findings.push(leftover(
                format!("something is mounted at {}", entry.mount_point.display()),
                "it belongs to no sandbox",
            ));
        }
    }
    if let Ok(cgroups) = CgroupFs::detect(Path::new("/sys/fs/cgroup")) {
        let found = shims::cgroups(&cgroups, settings).unwrap_or_default();
        for id in found
            .iter()
            .filter(|id| !sandboxes.contains(sandbox_of(id)))
        {
            findings.push(leftover(
                format!(
                    "the cgroup {}/{id} belongs to no sandbox",
                    settings.shim_cgroup
                ),
                "a shim of an unknown pod may run in it",
            ));
        }
    }
    findings
}

fn leftover(what: String, why: &str) -> Finding {
    Finding::new(Severity::Warning, what, why, REMEDY)
}

/// Damaged records, which were renamed.
fn damaged(dirs: &[PathBuf]) -> Vec<Finding> {
    let files = dirs
        .iter()
        .flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
    files
        .filter(|entry| entry.file_name().to_string_lossy().contains(".corrupt-"))
        .map(|entry| {
            Finding::new(
                Severity::Warning,
                format!("{} is a damaged record", entry.path().display()),
                "the disk or file system lost data, or another program changed the file; its pod or container was removed",
                "check the disk, then remove the file",
            )
        })
        .collect()
}

/// Identifiers of the records in a directory.
fn records(dir: &Path) -> BTreeSet<String> {
    names_with(dir, |name| name.strip_suffix(".json"))
}

/// Identifiers among the names in a directory.
fn names(dir: &Path) -> BTreeSet<String> {
    names_with(dir, |name| Some(name))
}

fn names_with(dir: &Path, of: impl Fn(&str) -> Option<&str>) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let id = of(name.to_str()?)?;
            is_identifier(id).then(|| id.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_record_is_reported_and_what_has_one_is_not() {
        let dir = tempfile::Builder::new()
            .prefix("rbt-runtime-")
            .tempdir()
            .unwrap();
        let mut settings = RuntimeSettings::new(dir.path().join("root"), dir.path().join("run"));
        settings.shim_cgroup =
            rubelet_cgroup_plan::CgroupPath::parse("rubelet-tnone/shims").unwrap();
        assert_eq!(find(&settings), []);
        let layout = Layout::new(&settings.root, &settings.run);
        layout.make().unwrap();
        let (known, unknown) = ("a".repeat(64), "b".repeat(64));
        fs::write(layout.sandbox_record(&known), "").unwrap();
        let attachments = settings.network.state_dir.join("attachments");
        fs::create_dir_all(&attachments).unwrap();
        for id in [&known, &unknown] {
            fs::create_dir(layout.sandbox(id).path()).unwrap();
            fs::write(attachments.join(format!("{id}.json")), "").unwrap();
        }
        fs::write(layout.sandbox_records().join("x.json.corrupt-1"), "").unwrap();
        let found = find(&settings);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].what.ends_with("is a damaged record"));
        assert!(found[1].what.contains(&unknown) && !found[1].what.contains(&known));
    }
}
