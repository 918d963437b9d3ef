//! The last lines of the logs of containers that are not up.

use rubelet_api::status::{ContainerState, ContainerStatus};
use rubelet_logs::read;
use rubelet_node_state::pod_board::PodEntry;
use rubelet_server::explanation::{ContainerExplanation, ContainerKind, ExplainedState};

use crate::LogPath;

/// Number of lines of each container.
const LINES: u64 = 5;
/// Number of bytes of each container.
const BYTES: usize = 2048;

/// Adds the last lines where they may explain something and the container's last end does not show
/// them already.
pub(super) async fn add(
    log_path: &LogPath,
    entry: &PodEntry,
    containers: &mut [ContainerExplanation],
) {
    for container in containers {
        let Some(status) = entry.status.container(&container.name) else {
            continue;
        };
        let Some((id, count)) = wanted(container, status) else {
            continue;
        };
        let told = container.ends.first();
        if told.is_some_and(|end| end.container_id == *id && !end.log.is_empty()) {
            continue;
        }
        let path = log_path(&entry.pod, &container.name, count);
        // Without a log there is nothing to show; the rest of the explanation stands.
        if let Ok(text) = read::tail_of(path, BYTES, LINES).await {
            container.log = text.lines().map(str::to_owned).collect();
        }
    }
}

/// The instance whose log is shown, and its restart count; `None` for containers that are up or
/// have completed successfully.
fn wanted<'a>(
    container: &ContainerExplanation,
    status: &'a ContainerStatus,
) -> Option<(&'a str, u32)> {
    let up = match &container.state {
        ExplainedState::Running { .. } => {
            container.ready || matches!(container.kind, ContainerKind::Ephemeral)
        }
        ExplainedState::Ended { exit_code, .. } => *exit_code == 0,
        ExplainedState::Waiting { .. } => false,
    };
    let id = match (&status.state, &status.last_state) {
        _ if up => return None,
        (ContainerState::Waiting { .. }, Some(last)) => &*last.container_id,
        (ContainerState::Waiting { .. }, None) => return None,
        _ => &*status.container_id,
    };
    let older = *status.container_id != *id;
    let count = status.restart_count.saturating_sub(u32::from(older));
    (!id.is_empty()).then_some((id, count))
}
