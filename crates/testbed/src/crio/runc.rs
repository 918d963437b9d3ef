//! runc as CRI-O starts it, without what a test host may lack. CRI-O insists where containerd takes what there is.

use std::path::Path;

use rustix::thread::{CapabilitySet, capabilities};

use crate::packages::RUNC;

/// The name of the program.
pub(super) const FILE: &str = "adapted-runc";

/// Where cgroups of version 1 limit huge pages.
const HUGE_PAGES: &str = "/sys/fs/cgroup/hugetlb";
/// Exists where there is nothing but version 2.
const VERSION_2: &str = "/sys/fs/cgroup/cgroup.controllers";

/// A script with the arguments of runc. It changes the configuration of a container before it is created.
pub(super) fn script() -> String {
    let changes: String = changes().map(|change| format!(" -e '{change}'")).collect();
    format!(
        r#"#!/bin/sh
previous=
for word; do
    [ "$previous" != --bundle ] || sed -i -z -E -e ''{changes} "$word/config.json"
    previous=$word
done
exec {RUNC} "$@"
"#
    )
}

/// Expressions of sed.
fn changes() -> impl Iterator<Item = String> {
    let own = capabilities(None).map_or(CapabilitySet::all(), |own| own.effective);
    let huge_pages = Path::new(VERSION_2).exists() || Path::new(HUGE_PAGES).exists();
    let lower_scores = own.contains(CapabilitySet::SYS_RESOURCE);
    let general = [
        (
            huge_pages,
            r#"s/"hugepageLimits":\s*\[[^]]*\]/"hugepageLimits":[]/"#,
        ),
        (
            lower_scores,
            r#"s/"oomScoreAdj":\s*-[0-9]+/"oomScoreAdj":0/"#,
        ),
    ];
    let general = general.into_iter().filter(|(can, _)| !can);
    let names: Vec<_> = own.complement().iter_names().collect();
    let capabilities = names
        .into_iter()
        .map(|(name, _)| format!(r#"s/"CAP_{name}",|,?"CAP_{name}"//g"#));
    general
        .map(|(_, change)| change.to_owned())
        .chain(capabilities)
}
