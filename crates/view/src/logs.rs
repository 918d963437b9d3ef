//! The log of a container: which file, and whether it still grows.

use std::sync::Arc;

use futures_util::StreamExt as _;
use rubelet_api::status::{ContainerState, ContainerStatus};
use rubelet_base::{ErrorChain, PodUid};
use rubelet_logs::{
    entry::StdStream,
    read::{self, ReadOptions},
};
use rubelet_node_state::pod_board::{PodBoard, PodEntry};
use rubelet_server::{LogError, LogOutput, LogRequest, LogSince, LogStream};
use tokio::sync::watch;

use super::LogPath;

/// Opens the log that a request asks for.
pub(super) async fn open(
    pods: &Arc<PodBoard>,
    log_path: &LogPath,
    request: LogRequest,
) -> Result<LogStream, LogError> {
    let entry = find(pods, &request)?;
    let status = entry.status.container(&request.container).ok_or_else(|| {
        LogError::BadRequest(format!(
            "container {:?} in pod {:?} is not available",
            request.container, request.pod
        ))
    })?;
    let (id, count) = instance(status, &request)?;
    let path = log_path(&entry.pod, &request.container, count);
    let options = ReadOptions {
        follow: request.follow,
        tail_lines: request.tail_lines,
        since: request.since.map(|since| match since {
            LogSince::Time(time) => time,
            LogSince::Seconds(seconds) => {
                let ago =
                    jiff::SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
                rubelet_server::clock::now()
                    .checked_sub(ago)
                    .unwrap_or(jiff::Timestamp::MIN)
            }
        }),
        limit_bytes: request.limit_bytes,
        timestamps: request.timestamps,
        stream: request.output.map(|output| match output {
            LogOutput::Stdout => StdStream::Stdout,
            LogOutput::Stderr => StdStream::Stderr,
        }),
        ..ReadOptions::default()
    };
    let ended = follow_end(pods, &entry.pod.uid, &request.container, id);
    match read::stream(path, options, ended).await {
        Ok(stream) => {
            let stream = stream.map(|chunk| {
                chunk.map_err(|error| std::io::Error::other(ErrorChain(&error).to_string()))
            });
            Ok(Box::pin(stream))
        }
        Err(error) if error.is_not_found() => Err(LogError::NotFound(format!(
            "the log of container {:?} in pod {:?} is gone",
            request.container, request.pod
        ))),
        Err(error) => Err(LogError::Internal(ErrorChain(&error).to_string())),
    }
}

fn find(pods: &PodBoard, request: &LogRequest) -> Result<Arc<PodEntry>, LogError> {
    pods.list()
        .into_iter()
        .map(|(_, _, entry)| entry)
        .find(|entry| {
            *entry.pod.name.namespace == *request.namespace && *entry.pod.name.name == *request.pod
        })
        .ok_or_else(|| LogError::NotFound(format!("pods {:?} not found", request.pod)))
}

/// The instance whose log is requested: its identifier and its restart count.
fn instance(status: &ContainerStatus, request: &LogRequest) -> Result<(Box<str>, u32), LogError> {
    let last = status
        .last_state
        .as_ref()
        .filter(|last| !last.container_id.is_empty());
    let count_of = |id: &str| {
        let older = *status.container_id != *id;
        status.restart_count.saturating_sub(u32::from(older))
    };
    let ended = last.map(|last| (last.container_id.clone(), count_of(&last.container_id)));
    if request.previous {
        return ended.ok_or_else(|| {
            LogError::BadRequest(format!(
                "previous terminated container {:?} in pod {:?} not found",
                request.container, request.pod
            ))
        });
    }
    let (container, pod) = (&request.container, &request.pod);
    let refused = |what: &str| {
        let text = format!("container {container:?} in pod {pod:?} is {what}");
        LogError::BadRequest(text)
    };
    match (&status.state, ended) {
        (ContainerState::Waiting { .. }, Some(ended)) => Ok(ended),
        (ContainerState::Waiting { reason, .. }, None) => Err(match &**reason {
            "ErrImagePull" => refused("waiting to start: image can't be pulled"),
            "ImagePullBackOff" => refused("waiting to start: trying and failing to pull image"),
            "" => refused("waiting to start: it was created and not started"),
            reason => refused(&format!("waiting to start: {reason}")),
        }),
        (ContainerState::Terminated(end), ended) if end.container_id.is_empty() => {
            ended.ok_or_else(|| refused("terminated"))
        }
        _ => Ok((status.container_id.clone(), status.restart_count)),
    }
}

/// Turns true when that instance no longer runs.
fn follow_end(
    pods: &Arc<PodBoard>,
    uid: &PodUid,
    name: &str,
    id: Box<str>,
) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    let (pods, uid, name) = (Arc::clone(pods), uid.clone(), name.to_owned());
    tokio::spawn(async move {
        let mut versions = pods.versions();
        loop {
            versions.mark_unchanged();
            let runs = pods.get(&uid).is_some_and(|entry| {
                entry.status.container(&name).is_some_and(|status| {
                    status.container_id == id
                        && matches!(status.state, ContainerState::Running { .. })
                })
            });
            if !runs {
                sender.send_replace(true);
                return;
            }
            tokio::select! {
                changed = versions.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
            }
        }
    });
    receiver
}
