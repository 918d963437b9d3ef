//! Sandboxes and containers that have records.

use rubelet_base::cgroup::CgroupPath;

use super::{
    Recovery, RecoveryInput, SeenContainer, Step,
    decision::{RecoveryDecision, Steps, fate, fate_of},
    leftovers,
};
use crate::{
    record::{ContainerRecord, ExitRecord, SandboxRecord},
    state::{ContainerPhase, SandboxPhase},
};

/// Decides what to do with everything that is there.
#[must_use]
pub fn plan(found: &RecoveryInput<'_>) -> Recovery {
    let mut steps = Steps::default();
    let mut ready = std::collections::BTreeSet::new();
    for record in found.sandboxes.values() {
        match fate(found, record) {
            RecoveryDecision::Adopt => {
                ready.insert(record.id.clone());
                steps.add(
                    &record.id,
                    Step::Adopt {
                        sandbox: record.id.clone(),
                    },
                    "its shim runs",
                );
            }
            fate @ (RecoveryDecision::Stop(why) | RecoveryDecision::Discard(why)) => {
                end(found, record, fate, why, &mut steps);
            }
        }
    }
    for record in found.containers.values() {
        container(found, record, &mut steps);
    }
    leftovers::leftovers(found, &mut steps);
    Recovery {
        steps: steps.in_order(),
        ready,
    }
}

fn end(
    found: &RecoveryInput<'_>,
    record: &SandboxRecord,
    fate: RecoveryDecision,
    why: &'static str,
    steps: &mut Steps,
) {
    let sandbox = || record.id.clone();
    if found.shims.contains_key(&record.id) {
        steps.add(&record.id, Step::EndShim { sandbox: sandbox() }, why);
    }
    if record.phase == SandboxPhase::Ready {
        steps.add(&record.id, Step::MarkNotReady { sandbox: sandbox() }, why);
    }
    if record.network_held {
        steps.add(&record.id, Step::FreeNetwork { sandbox: sandbox() }, why);
    }
    if matches!(fate, RecoveryDecision::Discard(_)) {
        steps.add(&record.id, Step::RemoveSandbox { sandbox: sandbox() }, why);
    }
}

fn container(found: &RecoveryInput<'_>, record: &ContainerRecord, steps: &mut Steps) {
    let fate = fate_of(found, &record.sandbox_id);
    let seen = found
        .shims
        .get(&record.sandbox_id)
        .and_then(|containers| containers.get(&record.id));
    let gone = match (fate, record.phase) {
        (RecoveryDecision::Discard(why), _) => Some(why),
        (_, ContainerPhase::Creating) => Some("it was not made completely"),
        (_, ContainerPhase::Removing) => Some("its removal was cut off"),
        _ => None,
    };
    if let Some(why) = gone {
        if fate == RecoveryDecision::Adopt && seen.is_some() {
            let (sandbox, container) = (record.sandbox_id.clone(), record.id.clone());
            steps.add(
                &record.sandbox_id,
                Step::DeleteInShim { sandbox, container },
                why,
            );
        }
        kill(found, record, why, steps);
        steps.add(
            &record.sandbox_id,
            Step::RemoveContainer {
                container: record.id.clone(),
            },
            why,
        );
        return;
    }
    match (fate, record.phase, seen) {
        // What it left behind in a shared process namespace lost its keeper.
        (RecoveryDecision::Stop(why), ContainerPhase::Exited, None) if was_ready(found, record) => {
            kill(found, record, why, steps);
        }
        (_, ContainerPhase::Exited, None | Some(SeenContainer::Exited(_))) => {}
        (RecoveryDecision::Adopt, ContainerPhase::Created, Some(SeenContainer::Created { .. })) => {
        }
        (
            RecoveryDecision::Adopt,
            ContainerPhase::Created | ContainerPhase::Running | ContainerPhase::Unknown,
            Some(SeenContainer::Running { pid, started_at }),
        ) => {
            if (record.phase, record.pid, record.started_at)
                != (ContainerPhase::Running, *pid, *started_at)
            {
                let step = Step::MarkRunning {
                    container: record.id.clone(),
                    pid: *pid,
                    started_at: *started_at,
                };
                let why = "its shim says that it runs";
                steps.add(&record.sandbox_id, step, why);
            }
        }
        (RecoveryDecision::Adopt, _, Some(SeenContainer::Exited(exit))) => {
            steps.add(
                &record.sandbox_id,
                Step::MarkExited {
                    container: record.id.clone(),
                    exit: exit.clone(),
                },
                "it ended while nobody listened",
            );
        }
        (fate, phase, _) => {
            let why = match fate {
                RecoveryDecision::Adopt => "its shim and its record don't agree",
                RecoveryDecision::Stop(why) | RecoveryDecision::Discard(why) => why,
            };
            kill(found, record, why, steps);
            if phase != ContainerPhase::Exited {
                steps.add(
                    &record.sandbox_id,
                    Step::MarkExited {
                        container: record.id.clone(),
                        exit: last_words(found, record),
                    },
                    why,
                );
            }
        }
    }
}

fn was_ready(found: &RecoveryInput<'_>, record: &ContainerRecord) -> bool {
    let sandbox = found.sandboxes.get(record.sandbox_id.as_str());
    sandbox.is_some_and(|sandbox| sandbox.phase == SandboxPhase::Ready)
}

/// Cgroups do not outlive a boot.
fn kill(found: &RecoveryInput<'_>, record: &ContainerRecord, why: &'static str, steps: &mut Steps) {
    if record.boot_id == found.boot_id
        && let Ok(cgroup) = CgroupPath::parse(&record.cgroup)
    {
        steps.add(&record.sandbox_id, Step::KillCgroup(cgroup), why);
    }
}

/// What its shim recorded, or an unknown exit.
fn last_words(found: &RecoveryInput<'_>, record: &ContainerRecord) -> ExitRecord {
    let message = if record.boot_id == found.boot_id {
        "the pod's shim exited unexpectedly, and the container's exit code is unknown"
    } else {
        "the host rebooted while the container was there"
    };
    found
        .exits
        .get(&record.id)
        .cloned()
        .unwrap_or_else(|| ExitRecord::unknown(found.now, message))
}
