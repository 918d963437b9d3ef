//! What has no record, or belongs to a sandbox that is not adopted.

use super::{
    RecoveryInput, Step,
    decision::{RecoveryDecision, Steps, fate_of},
};
use crate::{cgroup::sandbox_of, record::directories, state::ContainerPhase};

const NOBODY: &str = "it belongs to nobody";

pub(super) fn leftovers(found: &RecoveryInput<'_>, steps: &mut Steps) {
    shims(found, steps);
    mounts(found, steps);
    run_directories(found, steps);
    for container in &found.snapshots {
        if !keeps_files(found, container) {
            let sandbox = keeper_of(found, container);
            let container = container.clone();
            steps.add(sandbox, Step::RemoveSnapshot { container }, NOBODY);
        }
    }
}

/// The sandbox in which a container may still run; empty if there is none.
fn keeper_of<'a>(found: &'a RecoveryInput<'_>, container: &str) -> &'a str {
    if let Some(record) = found.containers.get(container) {
        return &record.sandbox_id;
    }
    let mut shims = found.shims.iter();
    let shim = shims.find(|(_, containers)| containers.contains_key(container));
    let mut directories = found.directories.iter();
    let directory =
        directories.find(|(_, bundles)| bundles.iter().any(|bundle| bundle == container));
    let sandbox = shim.map(|(id, _)| id).or(directory.map(|(id, _)| id));
    sandbox.map_or("", String::as_str)
}

/// Supervisors whose sandbox is not adopted, and containers of others that nobody knows.
fn shims(found: &RecoveryInput<'_>, steps: &mut Steps) {
    for (sandbox, containers) in &found.shims {
        if !is_adopted(found, sandbox) {
            let step = Step::EndShim {
                sandbox: sandbox.clone(),
            };
            steps.add(sandbox, step, NOBODY);
            continue;
        }
        for container in containers.keys() {
            if !belongs(found, sandbox, container) {
                let step = Step::DeleteInShim {
                    sandbox: sandbox.clone(),
                    container: container.clone(),
                };
                steps.add(sandbox, step, NOBODY);
            }
        }
    }
    for name in &found.shim_cgroups {
        if !is_adopted(found, sandbox_of(name))
            && let Ok(cgroup) = found.shim_cgroup.join(name)
        {
            steps.add(
                sandbox_of(name),
                Step::KillCgroup(cgroup),
                "the sandbox of that shim is not ready",
            );
        }
    }
}

/// What lies deeper is unmounted first.
fn mounts(found: &RecoveryInput<'_>, steps: &mut Steps) {
    let sandboxes = found.run.join("sandboxes");
    let mut mounts: Vec<_> = found.mounts.iter().collect();
    mounts.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    for path in mounts {
        let Ok(inner) = path.strip_prefix(&sandboxes) else {
            continue;
        };
        let mut parts = inner.iter().filter_map(|part| part.to_str());
        let Some(sandbox) = parts.next() else {
            continue;
        };
        let container = parts.next().filter(|part| *part == "containers");
        let container = container.and_then(|_| parts.next());
        let used = is_adopted(found, sandbox)
            && container.is_none_or(|container| belongs(found, sandbox, container));
        if !used {
            let why = "nothing uses it any more";
            steps.add(sandbox, Step::Unmount(path.clone()), why);
        }
    }
}

fn run_directories(found: &RecoveryInput<'_>, steps: &mut Steps) {
    for (sandbox, bundles) in &found.directories {
        if matches!(fate_of(found, sandbox), RecoveryDecision::Discard(_)) {
            let directory = directories::sandbox(found.run, sandbox);
            steps.add(sandbox, Step::RemoveDirectory(directory), NOBODY);
            continue;
        }
        for container in bundles {
            if !belongs(found, sandbox, container) {
                let directory = directories::container(found.run, sandbox, container);
                steps.add(sandbox, Step::RemoveDirectory(directory), NOBODY);
            }
        }
    }
}

fn is_adopted(found: &RecoveryInput<'_>, sandbox: &str) -> bool {
    fate_of(found, sandbox) == RecoveryDecision::Adopt
}

/// Whether the container is one of that sandbox, and stays.
fn belongs(found: &RecoveryInput<'_>, sandbox: &str, container: &str) -> bool {
    found
        .containers
        .get(container)
        .is_some_and(|record| record.sandbox_id == sandbox)
        && keeps_files(found, container)
}

/// Whether the container stays, even if it has exited: its files can still be read.
fn keeps_files(found: &RecoveryInput<'_>, container: &str) -> bool {
    found.containers.get(container).is_some_and(|record| {
        !matches!(
            record.phase,
            ContainerPhase::Creating | ContainerPhase::Removing
        ) && !matches!(
            fate_of(found, &record.sandbox_id),
            RecoveryDecision::Discard(_)
        )
    })
}
