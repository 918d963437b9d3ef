//! Sandboxes and containers that have records.

use rubelet_cgroup_plan::CgroupPath;

use super::{
    RecoveryInput, RecoveryPlan, RecoveryStep, SeenContainer,
    decision::{RecoveryDecision, RecoverySteps, decide, decision_of},
    leftovers,
};
use crate::{
    record::{ContainerRecord, ExitRecord, SandboxRecord},
    state::{ContainerPhase, SandboxPhase},
};

/// Plans the recovery of everything that earlier runs left.
#[must_use]
pub fn plan(found: &RecoveryInput<'_>) -> RecoveryPlan {
    let mut steps = RecoverySteps::default();
    let mut ready = std::collections::BTreeSet::new();
    for record in found.sandboxes.values() {
        match decide(found, record) {
            RecoveryDecision::Adopt => {
                ready.insert(record.id.clone());
                steps.add(
                    &record.id,
                    RecoveryStep::Adopt {
                        sandbox: record.id.clone(),
                    },
                    "its shim runs",
                );
            }
            decision @ (RecoveryDecision::Stop(why) | RecoveryDecision::Discard(why)) => {
                end(found, record, decision, why, &mut steps);
            }
        }
    }
    for record in found.containers.values() {
        container(found, record, &mut steps);
    }
    leftovers::leftovers(found, &mut steps);
    RecoveryPlan {
        steps: steps.in_order(),
        ready,
    }
}

fn end(
    found: &RecoveryInput<'_>,
    record: &SandboxRecord,
    decision: RecoveryDecision,
    why: &'static str,
    steps: &mut RecoverySteps,
) {
    let sandbox = || record.id.clone();
    if found.shims.contains_key(&record.id) {
        steps.add(
            &record.id,
            RecoveryStep::EndShim { sandbox: sandbox() },
            why,
        );
    }
    if record.phase == SandboxPhase::Ready {
        steps.add(
            &record.id,
            RecoveryStep::MarkNotReady { sandbox: sandbox() },
            why,
        );
    }
    if record.network_held {
        steps.add(
            &record.id,
            RecoveryStep::FreeNetwork { sandbox: sandbox() },
            why,
        );
    }
    if matches!(decision, RecoveryDecision::Discard(_)) {
        steps.add(
            &record.id,
            RecoveryStep::RemoveSandbox { sandbox: sandbox() },
            why,
        );
    }
}

fn container(found: &RecoveryInput<'_>, record: &ContainerRecord, steps: &mut RecoverySteps) {
    let decision = decision_of(found, &record.sandbox_id);
    let seen = found
        .shims
        .get(&record.sandbox_id)
        .and_then(|containers| containers.get(&record.id));
    let gone = match (decision, record.phase) {
        (RecoveryDecision::Discard(why), _) => Some(why),
        (_, ContainerPhase::Creating) => Some("its creation was interrupted"),
        (_, ContainerPhase::Removing) => Some("its removal was interrupted"),
        _ => None,
    };
    if let Some(why) = gone {
        if decision == RecoveryDecision::Adopt && seen.is_some() {
            let (sandbox, container) = (record.sandbox_id.clone(), record.id.clone());
            steps.add(
                &record.sandbox_id,
                RecoveryStep::DeleteInShim { sandbox, container },
                why,
            );
        }
        kill(found, record, why, steps);
        steps.add(
            &record.sandbox_id,
            RecoveryStep::RemoveContainer {
                container: record.id.clone(),
            },
            why,
        );
        return;
    }
    match (decision, record.phase, seen) {
        // Processes that it left in a shared PID namespace are no longer supervised by a shim.
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
                let step = RecoveryStep::MarkRunning {
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
                RecoveryStep::MarkExited {
                    container: record.id.clone(),
                    exit: exit.clone(),
                },
                "it exited while no runtime ran",
            );
        }
        (decision, phase, _) => {
            let why = match decision {
                RecoveryDecision::Adopt => "its shim and its record disagree",
                RecoveryDecision::Stop(why) | RecoveryDecision::Discard(why) => why,
            };
            kill(found, record, why, steps);
            if phase != ContainerPhase::Exited {
                steps.add(
                    &record.sandbox_id,
                    RecoveryStep::MarkExited {
                        container: record.id.clone(),
                        exit: exit_or_unknown(found, record),
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
fn kill(
    found: &RecoveryInput<'_>,
    record: &ContainerRecord,
    why: &'static str,
    steps: &mut RecoverySteps,
) {
    if record.boot_id == found.boot_id
        && let Ok(cgroup) = CgroupPath::parse(&record.cgroup)
    {
        steps.add(&record.sandbox_id, RecoveryStep::KillCgroup(cgroup), why);
    }
}

/// The exit that its shim recorded, or an unknown exit.
fn exit_or_unknown(found: &RecoveryInput<'_>, record: &ContainerRecord) -> ExitRecord {
    let message = if record.boot_id == found.boot_id {
        "the pod's shim exited unexpectedly, and the container's exit code is unknown"
    } else {
        "the host rebooted while the container existed"
    };
    found
        .exits
        .get(&record.id)
        .cloned()
        .unwrap_or_else(|| ExitRecord::unknown(found.now, message))
}
