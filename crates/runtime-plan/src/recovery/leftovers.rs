//! Leftovers: objects without a record, or of a sandbox that is not adopted.

use rubelet_cgroup_plan::runtime_cgroup::sandbox_of;

use super::{
    RecoveryInput, RecoveryStep,
    decision::{RecoveryDecision, RecoverySteps, decision_of},
};
use crate::{record::directories, state::ContainerPhase};

const UNUSED: &str = "no sandbox or container uses it";

pub(super) fn leftovers(found: &RecoveryInput<'_>, steps: &mut RecoverySteps) {
    shims(found, steps);
    mounts(found, steps);
    run_directories(found, steps);
    for container in &found.snapshots {
        if !keeps_files(found, container) {
            let sandbox = keeper_of(found, container);
            let container = container.clone();
            steps.add(sandbox, RecoveryStep::RemoveSnapshot { container }, UNUSED);
        }
    }
}

/// The sandbox in which a container may still run; empty if unknown.
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

/// Shims whose sandbox is not adopted, and containers of adopted ones that have no record.
fn shims(found: &RecoveryInput<'_>, steps: &mut RecoverySteps) {
    for (sandbox, containers) in &found.shims {
        if !is_adopted(found, sandbox) {
            let step = RecoveryStep::EndShim {
                sandbox: sandbox.clone(),
            };
            steps.add(sandbox, step, UNUSED);
            continue;
        }
        for container in containers.keys() {
            if !belongs(found, sandbox, container) {
                let step = RecoveryStep::DeleteInShim {
                    sandbox: sandbox.clone(),
                    container: container.clone(),
                };
                steps.add(sandbox, step, UNUSED);
            }
        }
    }
    for name in &found.shim_cgroups {
        if !is_adopted(found, sandbox_of(name))
            && let Ok(cgroup) = found.shim_cgroup.join(name)
        {
            steps.add(
                sandbox_of(name),
                RecoveryStep::KillCgroup(cgroup),
                "the sandbox of that shim is not ready",
            );
        }
    }
}

/// Deeper mount points are unmounted first.
fn mounts(found: &RecoveryInput<'_>, steps: &mut RecoverySteps) {
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
            let why = "no sandbox or container uses it";
            steps.add(sandbox, RecoveryStep::Unmount(path.clone()), why);
        }
    }
}

fn run_directories(found: &RecoveryInput<'_>, steps: &mut RecoverySteps) {
    for (sandbox, bundles) in &found.directories {
        if matches!(decision_of(found, sandbox), RecoveryDecision::Discard(_)) {
            let directory = directories::sandbox(found.run, sandbox);
            steps.add(sandbox, RecoveryStep::RemoveDirectory(directory), UNUSED);
            continue;
        }
        for container in bundles {
            if !belongs(found, sandbox, container) {
                let directory = directories::container(found.run, sandbox, container);
                steps.add(sandbox, RecoveryStep::RemoveDirectory(directory), UNUSED);
            }
        }
    }
}

fn is_adopted(found: &RecoveryInput<'_>, sandbox: &str) -> bool {
    decision_of(found, sandbox) == RecoveryDecision::Adopt
}

/// Reports whether the container belongs to that sandbox and is kept.
fn belongs(found: &RecoveryInput<'_>, sandbox: &str, container: &str) -> bool {
    found
        .containers
        .get(container)
        .is_some_and(|record| record.sandbox_id == sandbox)
        && keeps_files(found, container)
}

/// Reports whether the container is kept, even if it has exited: its files can still be read.
fn keeps_files(found: &RecoveryInput<'_>, container: &str) -> bool {
    found.containers.get(container).is_some_and(|record| {
        !matches!(
            record.phase,
            ContainerPhase::Creating | ContainerPhase::Removing
        ) && !matches!(
            decision_of(found, &record.sandbox_id),
            RecoveryDecision::Discard(_)
        )
    })
}
