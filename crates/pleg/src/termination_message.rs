//! Reads the termination message of a container.

use std::path::PathBuf;

use rubelet_cri::v1;
use rubelet_logs::read::tail_of;
use rubelet_pod_plan::cri_config::labels::{TERMINATION_PATH, TERMINATION_POLICY};
use rubelet_volumes::termination_log;
use tokio::task::spawn_blocking;

/// Limits of the part of the log that is used instead (kubelet: 2048 bytes or 80 lines).
const MAX_LOG_BYTES: usize = 2048;
const MAX_LOG_LINES: u64 = 80;

/// Reads the message of an exited container: from its file, or from the end of its log if the
/// policy is `FallbackToLogsOnError`, the file is empty and the container failed. For a container
/// that the runtime reports as running although its process is `gone`, only the file is read, as
/// its log may not be complete yet. Empty for all others.
pub(super) async fn read(status: &v1::ContainerStatus, gone: bool) -> String {
    let state = status.state();
    let gone = gone && state == v1::ContainerState::ContainerRunning;
    if state != v1::ContainerState::ContainerExited && !gone {
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
        // Without a log there is no message.
        Some(log) => tail_of(log, MAX_LOG_BYTES, MAX_LOG_LINES)
            .await
            .unwrap_or_default(),
        None => String::new(),
    }
}

const FALLBACK: &str = "FallbackToLogsOnError";

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path};

    use super::*;

    fn status(directory: &Path, state: v1::ContainerState) -> v1::ContainerStatus {
        let mount = v1::Mount {
            container_path: "/dev/termination-log".to_owned(),
            host_path: directory.join("message").display().to_string(),
            ..v1::Mount::default()
        };
        let annotation = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        v1::ContainerStatus {
            state: state.into(),
            mounts: vec![mount],
            annotations: BTreeMap::from([annotation(TERMINATION_PATH, "/dev/termination-log")])
                .into_iter()
                .collect(),
            ..v1::ContainerStatus::default()
        }
    }

    #[tokio::test]
    async fn the_message_is_read_when_the_process_is_gone_though_the_runtime_reports_running() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("message"), "out of coffee").unwrap();
        let running = status(directory.path(), v1::ContainerState::ContainerRunning);
        assert_eq!(read(&running, false).await, "");
        assert_eq!(read(&running, true).await, "out of coffee");
        let created = status(directory.path(), v1::ContainerState::ContainerCreated);
        assert_eq!(read(&created, true).await, "", "it never ran");
        let exited = status(directory.path(), v1::ContainerState::ContainerExited);
        assert_eq!(read(&exited, false).await, "out of coffee");
    }
}
