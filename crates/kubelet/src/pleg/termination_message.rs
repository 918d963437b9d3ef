//! What a container left to say about its end.

use std::path::PathBuf;

use rubelet_cri::v1;
use rubelet_logs::read::tail_of;
use rubelet_pod_plan::cri_config::labels::{TERMINATION_PATH, TERMINATION_POLICY};
use rubelet_volumes::termination_log;
use tokio::task::spawn_blocking;

/// The most that is taken from the log instead (kubelet: 2048 bytes or 80 lines).
const MAX_LOG_BYTES: usize = 2048;
const MAX_LOG_LINES: u64 = 80;

/// Reads the message of an exited container: the file it was given, or the end of its log where
/// the policy says so, the file is empty and the container failed. Empty for all others.
pub(super) async fn read(status: &v1::ContainerStatus) -> String {
    if status.state() != v1::ContainerState::ContainerExited {
        return String::new();
    }
    let file = status.annotations.get(TERMINATION_PATH).and_then(|inside| {
        status
            .mounts
            .iter()
            .find(|mount| mount.container_path == *inside)
            .map(|mount| PathBuf::from(&mount.host_path))
    });
    let log = (status.exit_code != 0
        && status
            .annotations
            .get(TERMINATION_POLICY)
            .is_some_and(|policy| policy == FALLBACK)
        && !status.log_path.is_empty())
    .then(|| PathBuf::from(&status.log_path));
    if let Some(file) = file {
        let message = spawn_blocking(move || termination_log::read(&file)).await;
        if let Ok(Ok(Some(message))) = message
            && !message.is_empty()
        {
            return message;
        }
    }
    match log {
        // Without a log there is nothing to say.
        Some(log) => tail_of(log, MAX_LOG_BYTES, MAX_LOG_LINES)
            .await
            .unwrap_or_default(),
        None => String::new(),
    }
}

const FALLBACK: &str = "FallbackToLogsOnError";
