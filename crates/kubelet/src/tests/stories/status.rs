//! The published status of a pod in one line, and changes of its conditions.

use rubelet_api::{
    pod::Pod,
    status::{Condition, ContainerState, ContainerStatus, PodStatus},
};
use rubelet_node_state::pod_board::PodEntry;

use super::words::length;

/// Phase and containers, such as `Running: web Running, log CrashLoopBackOff x2 after Error(1)`.
pub(super) fn summary(entry: &PodEntry) -> String {
    let status = &entry.status;
    let mut text = status.phase.as_str().to_owned();
    if !status.reason.is_empty() {
        text.push_str(&format!(" ({})", status.reason));
    }
    if let Some((_, grace)) = &entry.deletion {
        text.push_str(&format!(", ends within {}", length(*grace)));
    }
    let containers = status
        .all_containers()
        .map(|one| container(&entry.pod, one));
    let containers: Vec<String> = containers.collect();
    format!("{text}: {}", containers.join(", "))
}

fn container(pod: &Pod, status: &ContainerStatus) -> String {
    let mut text = format!("{} ", status.name);
    match &status.state {
        ContainerState::Waiting { reason, .. } if reason.is_empty() => text.push_str("Waiting"),
        ContainerState::Waiting { reason, .. } => text.push_str(reason),
        ContainerState::Running { .. } => text.push_str("Running"),
        ContainerState::Terminated(end) => {
            text.push_str(&format!("{}({})", end.reason, end.exit_code));
        }
    }
    if matches!(status.state, ContainerState::Running { .. }) && stays(pod, &status.name) {
        if !status.started {
            text.push_str(" (not started)");
        } else if !status.ready {
            text.push_str(" (not ready)");
        }
    }
    if status.restart_count > 0 {
        text.push_str(&format!(" x{}", status.restart_count));
    }
    if let (ContainerState::Waiting { .. }, Some(end)) = (&status.state, &status.last_state) {
        text.push_str(&format!(" after {}({})", end.reason, end.exit_code));
    }
    text
}

/// Readiness matters only for regular containers and sidecars.
fn stays(pod: &Pod, name: &str) -> bool {
    let mut sidecars = pod.spec.sidecars();
    let regular = pod.spec.containers.iter().any(|one| *one.name == *name);
    regular || sidecars.any(|(_, one)| *one.name == *name)
}

/// The conditions that changed. Before the first status all count as False.
pub(super) fn conditions(pod: &Pod, old: Option<&PodStatus>, new: &PodStatus) -> Vec<String> {
    let shown = new.conditions.iter().filter(|new| {
        let Some(old) = old.and_then(|old| old.condition(&new.kind)) else {
            return new.status.is_true() || is_foreign(&new.kind);
        };
        // The line before names the containers that are not ready.
        let same_words = old.message == new.message || &*new.reason == "ContainersNotReady";
        old.status != new.status || old.reason != new.reason || !same_words
    });
    let shown = shown.filter(|condition| !is_implied(pod, &condition.kind));
    shown.map(condition).collect()
}

fn condition(condition: &Condition) -> String {
    let mut text = format!("{} {}", condition.kind, condition.status.as_str());
    if !condition.reason.is_empty() {
        text.push_str(&format!(", {}", condition.reason));
    }
    if !condition.message.is_empty() {
        text.push_str(&format!(": {}", condition.message));
    }
    text
}

/// True for redundant conditions: every pod was scheduled, and without readiness gates and init
/// containers two more follow from the others.
fn is_implied(pod: &Pod, kind: &str) -> bool {
    match kind {
        "PodScheduled" => true,
        "ContainersReady" => pod.spec.readiness_gates.is_empty(),
        "Initialized" => pod.spec.init_containers.is_empty(),
        _ => false,
    }
}

fn is_foreign(kind: &str) -> bool {
    const OWN: [&str; 6] = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
        "AllContainersRestarting",
    ];
    !OWN.contains(&kind)
}
