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

/// What becomes of a container that has a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disposition<'a> {
    /// Its record is right.
    Keep,
    /// Its shim says that it runs.
    MarkRunning {
        /// Its first process.
        pid: i32,
        /// Start time, in nanoseconds since 1970.
        started_at: i64,
    },
    /// Its shim says that it has exited.
    MarkExited(&'a ExitRecord),
    /// Its record says that it has exited, but processes of it may run.
    Kill(&'static str),
    /// No shim supervises it any more, or its shim contradicts its record.
    KillAndMarkExited(&'static str),
    /// Its record is removed.
    Remove {
        /// The reason.
        why: &'static str,
        /// Its shim knows it.
        in_shim: bool,
    },
}

fn container(found: &RecoveryInput<'_>, record: &ContainerRecord, steps: &mut RecoverySteps) {
    let decision = decision_of(found, &record.sandbox_id);
    let seen = found
        .shims
        .get(&record.sandbox_id)
        .and_then(|containers| containers.get(&record.id));
    let disposition = disposition(found, record, decision, seen);
    container_steps(found, record, disposition, steps);
}

/// Decides from the decision about its sandbox, its record and what its shim says.
fn disposition<'a>(
    found: &RecoveryInput<'_>,
    record: &ContainerRecord,
    decision: RecoveryDecision,
    seen: Option<&'a SeenContainer>,
) -> Disposition<'a> {
    const CONTRADICTION: &str = "its shim and its record disagree";
    use ContainerPhase as Phase;
    use RecoveryDecision::{Adopt, Discard, Stop};
    use SeenContainer as Seen;

    let remove = |why| Disposition::Remove {
        why,
        in_shim: decision == Adopt && seen.is_some(),
    };
    match (decision, record.phase, seen) {
        (Discard(why), _, _) => remove(why),
        (Adopt | Stop(_), Phase::Creating, _) => remove("its creation was interrupted"),
        (Adopt | Stop(_), Phase::Removing, _) => remove("its removal was interrupted"),

        // Processes that it left in a shared PID namespace are no longer supervised by a shim.
        (Stop(why), Phase::Exited, None) if was_ready(found, record) => Disposition::Kill(why),
        (Adopt | Stop(_), Phase::Exited, None | Some(Seen::Exited(_))) => Disposition::Keep,
        (Adopt, Phase::Exited, Some(Seen::Created { .. } | Seen::Running { .. })) => {
            Disposition::Kill(CONTRADICTION)
        }
        (Stop(why), Phase::Exited, Some(Seen::Created { .. } | Seen::Running { .. })) => {
            Disposition::Kill(why)
        }

        (Adopt, Phase::Created, Some(Seen::Created { .. })) => Disposition::Keep,
        (Adopt, Phase::Running, Some(Seen::Running { pid, started_at }))
            if (record.pid, record.started_at) == (*pid, *started_at) =>
        {
            Disposition::Keep
        }
        (
            Adopt,
            Phase::Created | Phase::Running | Phase::Unknown,
            Some(Seen::Running { pid, started_at }),
        ) => Disposition::MarkRunning {
            pid: *pid,
            started_at: *started_at,
        },
        (Adopt, Phase::Created | Phase::Running | Phase::Unknown, Some(Seen::Exited(exit))) => {
            Disposition::MarkExited(exit)
        }
        (Adopt, Phase::Running | Phase::Unknown, Some(Seen::Created { .. }))
        | (Adopt, Phase::Created | Phase::Running | Phase::Unknown, None) => {
            Disposition::KillAndMarkExited(CONTRADICTION)
        }
        (Stop(why), Phase::Created | Phase::Running | Phase::Unknown, _) => {
            Disposition::KillAndMarkExited(why)
        }
    }
}

fn container_steps(
    found: &RecoveryInput<'_>,
    record: &ContainerRecord,
    disposition: Disposition<'_>,
    steps: &mut RecoverySteps,
) {
    let (sandbox, container) = (&record.sandbox_id, || record.id.clone());
    match disposition {
        Disposition::Keep => {}
        Disposition::MarkRunning { pid, started_at } => {
            let step = RecoveryStep::MarkRunning {
                container: container(),
                pid,
                started_at,
            };
            steps.add(sandbox, step, "its shim says that it runs");
        }
        Disposition::MarkExited(exit) => {
            let step = RecoveryStep::MarkExited {
                container: container(),
                exit: exit.clone(),
            };
            steps.add(sandbox, step, "it exited while no runtime ran");
        }
        Disposition::Kill(why) => kill(found, record, why, steps),
        Disposition::KillAndMarkExited(why) => {
            kill(found, record, why, steps);
            let step = RecoveryStep::MarkExited {
                container: container(),
                exit: exit_or_unknown(found, record),
            };
            steps.add(sandbox, step, why);
        }
        Disposition::Remove { why, in_shim } => {
            if in_shim {
                let step = RecoveryStep::DeleteInShim {
                    sandbox: sandbox.clone(),
                    container: container(),
                };
                steps.add(sandbox, step, why);
            }
            kill(found, record, why, steps);
            let step = RecoveryStep::RemoveContainer {
                container: container(),
            };
            steps.add(sandbox, step, why);
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
