//! `status.conditions`, in upstream's order.

use jiff::Timestamp;
use rubelet_api::status::{Condition, ContainerState, ContainerStatus, Phase};

use crate::{actions::Actions, plan::PodSnapshot, plan::Step};

/// All conditions of a pod without readiness gates.
pub(super) fn all(
    snapshot: &PodSnapshot<'_>,
    actions: &Actions,
    phase: Phase,
    init_containers: &[ContainerStatus],
    containers: &[ContainerStatus],
    now: Timestamp,
) -> Vec<Condition> {
    let sandbox_missing = actions
        .steps
        .iter()
        .any(|step| matches!(step, Step::CreateSandbox { .. }))
        || snapshot.observed.ready_sandbox().is_none();
    let (ready, reason, message) = containers_ready(phase, containers);
    let (initialized, init_reason, init_message) =
        initialized(snapshot, phase, init_containers, containers);
    [
        (
            "PodReadyToStartContainers",
            !sandbox_missing,
            "",
            String::new(),
        ),
        ("Initialized", initialized, init_reason, init_message),
        ("Ready", ready, reason, message.clone()),
        ("ContainersReady", ready, reason, message),
        ("PodScheduled", true, "", String::new()),
    ]
    .into_iter()
    .map(|(kind, status, reason, message)| {
        let last_transition = snapshot
            .previous
            .and_then(|old| old.conditions.iter().find(|old| *old.kind == *kind))
            .filter(|old| old.status == status)
            .map_or(now, |old| old.last_transition);
        Condition {
            kind: kind.into(),
            status,
            reason: reason.into(),
            message: message.into(),
            last_transition,
        }
    })
    .collect()
}

fn containers_ready(phase: Phase, containers: &[ContainerStatus]) -> (bool, &'static str, String) {
    let unready: Vec<&str> = containers
        .iter()
        .filter(|status| !status.ready)
        .map(|status| &*status.name)
        .collect();
    match phase {
        Phase::Succeeded => (false, "PodCompleted", String::new()),
        Phase::Failed => (false, "PodFailed", String::new()),
        _ if unready.is_empty() => (true, "", String::new()),
        _ => (
            false,
            "ContainersNotReady",
            format!("containers with unready status: [{}]", unready.join(" ")),
        ),
    }
}

fn initialized(
    snapshot: &PodSnapshot<'_>,
    phase: Phase,
    init_containers: &[ContainerStatus],
    containers: &[ContainerStatus],
) -> (bool, &'static str, String) {
    if phase == Phase::Succeeded {
        return (true, "PodCompleted", String::new());
    }
    let once_true = snapshot.previous.is_some_and(|old| {
        old.conditions
            .iter()
            .any(|condition| &*condition.kind == "Initialized" && condition.status)
    });
    let any_started = containers.iter().any(|status| {
        matches!(
            status.state,
            ContainerState::Running { .. } | ContainerState::Terminated(_)
        )
    });
    let incomplete: Vec<&str> = init_containers
        .iter()
        .filter(|status| !status.ready)
        .map(|status| &*status.name)
        .collect();
    if incomplete.is_empty() || any_started || once_true {
        return (true, "", String::new());
    }
    (
        false,
        "ContainersNotInitialized",
        format!(
            "containers with incomplete status: [{}]",
            incomplete.join(" ")
        ),
    )
}
