//! `status.conditions`, in upstream's order.

mod restarting;

use jiff::Timestamp;
use rubelet_api::{
    pod::RestartPolicy,
    status::{Condition, ConditionStatus, ContainerState, ContainerStatus, Phase},
};

use crate::{actions::Actions, intents::DISRUPTION_TARGET, snapshot::PodSnapshot, step::Step};

/// The contents of a condition.
struct ConditionText {
    status: bool,
    reason: &'static str,
    message: String,
}

impl ConditionText {
    fn yes() -> Self {
        Self::because(true, "")
    }

    fn because(status: bool, reason: &'static str) -> Self {
        let message = String::new();
        Self {
            status,
            reason,
            message,
        }
    }
}

/// All conditions of a pod: external ones first, then the agent's own.
pub(super) fn all(
    snapshot: &PodSnapshot<'_>,
    actions: &Actions,
    phase: Phase,
    init_containers: &[ContainerStatus],
    containers: &[ContainerStatus],
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = external(snapshot);
    let containers_ready = containers_ready(snapshot, phase, init_containers, containers);
    let ready = ready(snapshot, &containers_ready, &conditions);
    let own = [
        (
            "PodReadyToStartContainers",
            Some(has_sandbox(snapshot, actions)),
        ),
        (
            "Initialized",
            Some(initialized(snapshot, phase, init_containers, containers)),
        ),
        ("Ready", Some(ready)),
        ("ContainersReady", Some(containers_ready)),
        ("PodScheduled", Some(ConditionText::yes())),
        ("PodResizePending", resize_pending(snapshot, phase)),
        (
            crate::snapshot::ALL_RESTARTING,
            restarting::condition(snapshot, actions, phase),
        ),
    ];
    for (kind, text) in own {
        let Some(text) = text else { continue };
        let status = ConditionStatus::from(text.status);
        let old = snapshot.previous.and_then(|old| old.condition(kind));
        conditions.push(Condition {
            kind: kind.into(),
            status,
            reason: text.reason.into(),
            message: text.message.into(),
            last_transition: old
                .filter(|old| old.status == status)
                .map_or(now, |old| old.last_transition),
            observed_generation: snapshot.generation,
        });
    }
    conditions
}

/// `PodResizePending` for a resize that is not possible, while the pod has not terminated.
fn resize_pending(snapshot: &PodSnapshot<'_>, phase: Phase) -> Option<ConditionText> {
    let why = snapshot.pod.resize_infeasible?;
    let message = why.to_owned();
    (!phase.is_terminal()).then_some(ConditionText {
        status: true,
        reason: "Infeasible",
        message,
    })
}

/// Conditions set from outside the agent, `DisruptionTarget` last.
fn external(snapshot: &PodSnapshot<'_>) -> Vec<Condition> {
    let mut found: Vec<&crate::intents::ExternalCondition> =
        snapshot.intents.conditions.iter().collect();
    found.sort_by_key(|one| &*one.kind == DISRUPTION_TARGET);
    found
        .into_iter()
        .map(|one| Condition {
            kind: one.kind.clone(),
            status: one.status,
            reason: one.reason.clone(),
            message: one.message.clone(),
            last_transition: one.last_transition,
            observed_generation: 0,
        })
        .collect()
}

fn has_sandbox(snapshot: &PodSnapshot<'_>, actions: &Actions) -> ConditionText {
    let makes_one = |step: &Step| matches!(step, Step::CreateSandbox { .. });
    let missing = actions.steps.iter().any(makes_one)
        || actions.sandbox_unusable
        || snapshot.observed.ready_sandbox().is_none();
    ConditionText::because(!missing, "")
}

fn containers_ready(
    snapshot: &PodSnapshot<'_>,
    phase: Phase,
    init_containers: &[ContainerStatus],
    containers: &[ContainerStatus],
) -> ConditionText {
    let spec = &snapshot.pod.spec;
    let is_ready = |list: &[ContainerStatus], name: &str| {
        list.iter()
            .any(|status| *status.name == *name && status.ready)
    };
    let sidecars = spec
        .sidecars()
        .filter(|(_, one)| !is_ready(init_containers, &one.name));
    let regular = spec
        .containers
        .iter()
        .filter(|one| !is_ready(containers, &one.name));
    let unready: Vec<&str> = sidecars
        .map(|(_, one)| &*one.name)
        .chain(regular.map(|one| &*one.name))
        .collect();
    match phase {
        Phase::Succeeded => ConditionText::because(false, "PodCompleted"),
        Phase::Failed => ConditionText::because(false, "PodFailed"),
        _ if unready.is_empty() => ConditionText::yes(),
        _ => ConditionText {
            status: false,
            reason: "ContainersNotReady",
            message: format!("containers with unready status: [{}]", unready.join(" ")),
        },
    }
}

/// `Ready`: all containers are ready and all readiness gates are true (KEP-580).
fn ready(
    snapshot: &PodSnapshot<'_>,
    containers: &ConditionText,
    external: &[Condition],
) -> ConditionText {
    if !containers.status {
        return ConditionText {
            message: containers.message.clone(),
            ..*containers
        };
    }
    let unmet: Vec<String> = snapshot
        .pod
        .spec
        .readiness_gates
        .iter()
        .filter_map(|gate| match external.iter().find(|one| one.kind == *gate) {
            None => Some(format!(
                "corresponding condition of pod readiness gate \"{gate}\" does not exist."
            )),
            Some(one) if !one.status.is_true() => Some(format!(
                "the status of pod readiness gate \"{gate}\" is not \"True\", but {}",
                one.status.as_str()
            )),
            Some(_) => None,
        })
        .collect();
    if unmet.is_empty() {
        return ConditionText::yes();
    }
    ConditionText {
        status: false,
        reason: "ReadinessGatesNotReady",
        message: unmet.join(", "),
    }
}

fn initialized(
    snapshot: &PodSnapshot<'_>,
    phase: Phase,
    init_containers: &[ContainerStatus],
    containers: &[ContainerStatus],
) -> ConditionText {
    if phase == Phase::Succeeded {
        return ConditionText::because(true, "PodCompleted");
    }
    let old = snapshot
        .previous
        .and_then(|old| old.condition("Initialized"));
    let once_true = old.is_some_and(|old| old.status.is_true());
    let any_started = containers.iter().any(|status| {
        matches!(
            status.state,
            ContainerState::Running { .. } | ContainerState::Terminated(_)
        )
    });
    let incomplete: Vec<&str> = snapshot
        .pod
        .spec
        .init_containers
        .iter()
        .filter(|one| {
            let status = init_containers.iter().find(|s| s.name == one.name);
            !status.is_some_and(|status| match one.restart_policy {
                Some(RestartPolicy::Always) => status.started,
                _ => status.ready,
            })
        })
        .map(|one| &*one.name)
        .collect();
    if incomplete.is_empty() || any_started || once_true {
        return ConditionText::yes();
    }
    ConditionText {
        status: false,
        reason: "ContainersNotInitialized",
        message: format!(
            "containers with incomplete status: [{}]",
            incomplete.join(" ")
        ),
    }
}
