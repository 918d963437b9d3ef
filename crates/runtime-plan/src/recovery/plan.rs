//! Sandboxes and containers that have records.

use rubelet_base::cgroup::CgroupPath;

use super::{Found, Recovery, SeenContainer, Step, leftovers};
use crate::{
    record::{ContainerRecord, ExitRecord, SandboxRecord},
    state::{ContainerPhase, SandboxPhase},
};

/// What becomes of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes on.
    Adopt,
    /// It stays as one that is not ready.
    Stop(&'static str),
    /// It goes.
    Discard(&'static str),
}

/// Steps in the order of their kinds.
#[derive(Default)]
pub(super) struct Steps {
    kinds: [Vec<super::Planned>; KINDS],
}

const KINDS: usize = 8;

impl Steps {
    pub(super) fn add(&mut self, sandbox: &str, step: Step, why: &'static str) {
        let kind = match step {
            Step::Adopt { .. } => 0,
            Step::EndShim { .. } | Step::DeleteInShim { .. } => 1,
            Step::KillCgroup(_) => 2,
            Step::MarkRunning { .. } | Step::MarkExited { .. } | Step::MarkNotReady { .. } => 3,
            Step::FreeNetwork { .. } => 4,
            Step::Unmount(_) => 5,
            Step::RemoveFolder(_) | Step::RemoveSnapshot { .. } => 6,
            Step::RemoveContainer { .. } | Step::RemoveSandbox { .. } => 7,
        };
        let sandbox = sandbox.to_owned();
        let planned = super::Planned { sandbox, step, why };
        if !self.kinds[kind]
            .iter()
            .any(|known| known.step == planned.step)
        {
            self.kinds[kind].push(planned);
        }
    }

    fn in_order(self) -> Vec<super::Planned> {
        self.kinds.into_iter().flatten().collect()
    }
}

/// Decides what to do with everything that is there.
#[must_use]
pub fn plan(found: &Found<'_>) -> Recovery {
    let mut steps = Steps::default();
    let mut ready = std::collections::BTreeSet::new();
    for record in found.sandboxes.values() {
        match fate(found, record) {
            Fate::Adopt => {
                ready.insert(record.id.clone());
                steps.add(
                    &record.id,
                    Step::Adopt {
                        sandbox: record.id.clone(),
                    },
                    "its supervisor runs",
                );
            }
            fate @ (Fate::Stop(why) | Fate::Discard(why)) => {
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

/// What becomes of a sandbox with a record.
pub(super) fn fate(found: &Found<'_>, record: &SandboxRecord) -> Fate {
    let lives = record.boot_id == found.boot_id && found.shims.contains_key(&record.id);
    match record.phase {
        SandboxPhase::Creating => Fate::Discard("it was not made completely"),
        SandboxPhase::Removing => Fate::Discard("its removal was cut off"),
        SandboxPhase::Ready if lives => Fate::Adopt,
        SandboxPhase::Ready if record.boot_id != found.boot_id => {
            Fate::Stop("it is of an earlier boot of the host")
        }
        SandboxPhase::Ready => Fate::Stop("its supervisor is gone"),
        SandboxPhase::NotReady => Fate::Stop("it was stopped"),
    }
}

/// What becomes of the sandbox of that identifier; without a record it goes.
pub(super) fn fate_of(found: &Found<'_>, sandbox: &str) -> Fate {
    match found.sandboxes.get(sandbox) {
        Some(record) => fate(found, record),
        None => Fate::Discard("nobody knows its sandbox"),
    }
}

fn end(
    found: &Found<'_>,
    record: &SandboxRecord,
    fate: Fate,
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
    if matches!(fate, Fate::Discard(_)) {
        steps.add(&record.id, Step::RemoveSandbox { sandbox: sandbox() }, why);
    }
}

fn container(found: &Found<'_>, record: &ContainerRecord, steps: &mut Steps) {
    let fate = fate_of(found, &record.sandbox_id);
    let seen = found
        .shims
        .get(&record.sandbox_id)
        .and_then(|containers| containers.get(&record.id));
    let gone = match (fate, record.phase) {
        (Fate::Discard(why), _) => Some(why),
        (_, ContainerPhase::Creating) => Some("it was not made completely"),
        (_, ContainerPhase::Removing) => Some("its removal was cut off"),
        _ => None,
    };
    if let Some(why) = gone {
        if fate == Fate::Adopt && seen.is_some() {
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
        (Fate::Stop(why), ContainerPhase::Exited, None) if was_ready(found, record) => {
            kill(found, record, why, steps);
        }
        (_, ContainerPhase::Exited, None | Some(SeenContainer::Exited(_))) => {}
        (Fate::Adopt, ContainerPhase::Created, Some(SeenContainer::Created { .. })) => {}
        (
            Fate::Adopt,
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
                let why = "its supervisor says that it runs";
                steps.add(&record.sandbox_id, step, why);
            }
        }
        (Fate::Adopt, _, Some(SeenContainer::Exited(exit))) => {
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
                Fate::Adopt => "its supervisor and its record don't agree",
                Fate::Stop(why) | Fate::Discard(why) => why,
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

fn was_ready(found: &Found<'_>, record: &ContainerRecord) -> bool {
    let sandbox = found.sandboxes.get(record.sandbox_id.as_str());
    sandbox.is_some_and(|sandbox| sandbox.phase == SandboxPhase::Ready)
}

/// Cgroups do not outlive a boot.
fn kill(found: &Found<'_>, record: &ContainerRecord, why: &'static str, steps: &mut Steps) {
    if record.boot_id == found.boot_id
        && let Ok(cgroup) = CgroupPath::parse(&record.cgroup)
    {
        steps.add(&record.sandbox_id, Step::KillCgroup(cgroup), why);
    }
}

/// What its supervisor wrote down, or that nobody knows.
fn last_words(found: &Found<'_>, record: &ContainerRecord) -> ExitRecord {
    let message = if record.boot_id == found.boot_id {
        "the supervisor of the pod ended, and nobody saw how the container did"
    } else {
        "the host was started anew while the container was there"
    };
    found
        .exits
        .get(&record.id)
        .cloned()
        .unwrap_or_else(|| ExitRecord::unknown(found.now, message))
}
