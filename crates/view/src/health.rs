//! Liveness of the agent's loops, and the node's state in one line.

use std::time::Duration;

use rubelet_api::status::Phase;
use rubelet_node_state::{heartbeat::Heartbeat, pod_board::PodBoard, runtime_state::RuntimeState};

use super::ClusterProblems;

/// A loop without a round for this long is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// The first loop without a round for too long.
#[must_use]
pub fn stuck_loop(heartbeats: &[(&'static str, Heartbeat)]) -> Option<String> {
    heartbeats
        .iter()
        .find(|(_, beat)| beat.age() > STUCK)
        .map(|(name, beat)| {
            format!(
                "loop {name} did not go round for {} s",
                beat.age().as_secs()
            )
        })
}

/// `3/4 pods ready`, how many have completed, and what is wrong with the runtime or on the way
/// to the cluster.
#[must_use]
pub fn summary(pods: &PodBoard, runtime: &RuntimeState, cluster: &ClusterProblems) -> String {
    let rows = pods.list();
    let completed = rows
        .iter()
        .filter(|(_, _, entry)| entry.status.phase == Phase::Succeeded)
        .count();
    let ready = rows
        .iter()
        .filter(|(_, _, entry)| {
            let mut conditions = entry.status.conditions.iter();
            conditions.any(|condition| &*condition.kind == "Ready" && condition.status.is_true())
        })
        .count();
    let mut count = format!("{ready}/{} pods ready", rows.len() - completed);
    if completed > 0 {
        count.push_str(&format!(", {completed} completed"));
    }
    match &runtime.problem {
        Some(problem) => count.push_str(&format!(", {problem}")),
        None if !runtime.answered => count.push_str(", waiting for the container runtime"),
        None => {}
    }
    count.push_str(&cluster.line());
    count
}
