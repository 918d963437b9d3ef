//! Sessions with containers: which container is meant, and what serves the session.
//!
//! Pods are looked up on the pod board. An embedded runtime serves a session in this process; any
//! other runtime returns the URL of its streaming server.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use rubelet_api::status::ContainerState;
use rubelet_cri::{Code, CriError, CriErrorKind, RuntimeService, v1};
use rubelet_node_state::pod_board::{PodBoard, PodEntry};
use rubelet_pod_plan::cri_config::labels::POD_UID;
use rubelet_server::{PodRef, RunRequest, SessionAction, SessionError, SessionRequest};
use rubelet_streaming::{SessionKind, SessionTarget, Sessions, StdStreams};

/// The runtime that serves sessions.
#[derive(Clone)]
pub struct SessionParts {
    /// The runtime.
    pub runtime: Arc<dyn RuntimeService>,
    /// The same one, if it is in this process.
    pub embedded: Option<Arc<dyn Sessions>>,
    /// `streamingConnectionIdleTimeout`.
    pub idle_timeout: Duration,
}

/// Finds the other end of a session.
pub(super) async fn target(
    pods: &PodBoard,
    parts: &SessionParts,
    request: &SessionRequest,
) -> Result<SessionTarget, SessionError> {
    match &request.action {
        SessionAction::Exec {
            container,
            command,
            streams,
        } => {
            let entry = of_container(pods, &request.pod, request.uid.as_deref())?;
            let call = v1::ExecRequest {
                container_id: running(&entry, container)?,
                cmd: command.clone(),
                tty: streams.tty,
                stdin: streams.stdin,
                stdout: streams.stdout,
                stderr: streams.stderr,
            };
            exec(parts, call, *streams).await
        }
        SessionAction::Attach { container, streams } => {
            let entry = of_container(pods, &request.pod, request.uid.as_deref())?;
            let container_id = running(&entry, container)?;
            let defined = entry.pod.spec.container(container);
            // Whether there is a terminal was decided when the container was made.
            let streams = StdStreams {
                tty: defined.ok_or(SessionError::NotRunning)?.tty,
                ..*streams
            };
            attach(parts, container_id, streams).await
        }
        SessionAction::PortForward { ports } => {
            let entry = named(pods, &request.pod, request.uid.as_deref())?;
            let call = v1::PortForwardRequest {
                pod_sandbox_id: ready_sandbox(parts, &entry).await?,
                port: ports.iter().copied().map(i32::from).collect(),
            };
            port_forward(parts, call, ports.clone()).await
        }
    }
}

async fn exec(
    parts: &SessionParts,
    call: v1::ExecRequest,
    streams: StdStreams,
) -> Result<SessionTarget, SessionError> {
    if let Some(embedded) = &parts.embedded {
        return Ok(SessionTarget::Exec(call, Arc::clone(embedded)));
    }
    let answer = parts.runtime.exec(call).await;
    let answer = answer.map(|answer| answer.url);
    url(answer, (SessionKind::Exec, streams, Vec::new()))
}

async fn attach(
    parts: &SessionParts,
    container_id: String,
    streams: StdStreams,
) -> Result<SessionTarget, SessionError> {
    let call = v1::AttachRequest {
        container_id,
        stdin: streams.stdin,
        tty: streams.tty,
        stdout: streams.stdout,
        stderr: streams.stderr,
    };
    if let Some(embedded) = &parts.embedded {
        return Ok(SessionTarget::Attach(call, Arc::clone(embedded)));
    }
    let answer = parts.runtime.attach(call).await;
    let answer = answer.map(|answer| answer.url);
    url(answer, (SessionKind::Attach, streams, Vec::new()))
}

async fn port_forward(
    parts: &SessionParts,
    call: v1::PortForwardRequest,
    ports: Vec<u16>,
) -> Result<SessionTarget, SessionError> {
    if let Some(embedded) = &parts.embedded {
        return Ok(SessionTarget::PortForward(call, Arc::clone(embedded)));
    }
    let answer = parts.runtime.port_forward(call).await;
    let answer = answer.map(|answer| answer.url);
    let what = (SessionKind::PortForward, StdStreams::default(), ports);
    url(answer, what)
}

fn url(
    answer: Result<String, CriError>,
    (kind, streams, ports): (SessionKind, StdStreams, Vec<u16>),
) -> Result<SessionTarget, SessionError> {
    let text = answer.map_err(|error| refused(&error))?;
    let url = text.parse().map_err(|error| {
        SessionError::Runtime(format!(
            "the container runtime answered with {text:?}, which is no URL: {error}"
        ))
    })?;
    Ok(SessionTarget::Url {
        url,
        kind,
        streams,
        ports,
    })
}

/// Runs a command to its end.
pub(super) async fn run(
    pods: &PodBoard,
    parts: &SessionParts,
    request: &RunRequest,
) -> Result<Bytes, SessionError> {
    let entry = of_container(pods, &request.pod, request.uid.as_deref())?;
    let call = v1::ExecSyncRequest {
        container_id: running(&entry, &request.container)?,
        cmd: request.command.clone(),
        // No limit; the client may disconnect.
        timeout: 0,
    };
    let answer = parts.runtime.exec_sync(call).await;
    let answer = answer.map_err(|error| SessionError::Runtime(words(&error)))?;
    if answer.exit_code != 0 {
        return Err(SessionError::Runtime(format!(
            "command '{}' exited with {}: {}",
            request.command.join(" "),
            answer.exit_code,
            String::from_utf8_lossy(&answer.stderr)
        )));
    }
    let mut output = answer.stdout;
    output.extend_from_slice(&answer.stderr);
    Ok(output.into())
}

/// The pod of that name, to find a container in; with another UID, the container counts as not
/// running.
pub(super) fn of_container(
    pods: &PodBoard,
    pod: &PodRef,
    uid: Option<&str>,
) -> Result<Arc<PodEntry>, SessionError> {
    named(pods, pod, uid).map_err(|error| match error {
        SessionError::OtherUid => SessionError::NotRunning,
        other => other,
    })
}

/// The pod of that name, and of that UID if one is given. If there are two (a replacement waits
/// until the old pod is gone), it is the one that runs.
fn named(pods: &PodBoard, pod: &PodRef, uid: Option<&str>) -> Result<Arc<PodEntry>, SessionError> {
    let rows = pods.list().into_iter().map(|(_, _, entry)| entry);
    let named: Vec<_> = rows
        .filter(|entry| {
            let name = &entry.pod.name;
            *name.namespace == *pod.namespace && *name.name == *pod.name
        })
        .collect();
    if named.is_empty() {
        return Err(SessionError::NoPod);
    }
    let runs = |entry: &PodEntry| entry.status.running_containers().next().is_some();
    let meant = named
        .into_iter()
        .filter(|entry| uid.is_none_or(|uid| entry.pod.uid.as_str() == uid));
    meant
        .min_by_key(|entry| (!runs(entry), entry.deletion.is_some()))
        .ok_or(SessionError::OtherUid)
}

/// The identifier of a container that runs.
pub(super) fn running(entry: &PodEntry, container: &str) -> Result<String, SessionError> {
    let status = entry.status.container(container);
    let status = status.ok_or(SessionError::NotRunning)?;
    match status.state {
        ContainerState::Running { .. } if !status.container_id.is_empty() => {
            Ok(status.container_id.to_string())
        }
        _ => Err(SessionError::NotRunning),
    }
}

/// The newest sandbox of the pod that is ready.
pub(super) async fn ready_sandbox(
    parts: &SessionParts,
    entry: &PodEntry,
) -> Result<String, SessionError> {
    let state = v1::PodSandboxStateValue {
        state: v1::PodSandboxState::SandboxReady.into(),
    };
    let uid = entry.pod.uid.as_str().to_owned();
    let filter = v1::PodSandboxFilter {
        state: Some(state),
        label_selector: [(POD_UID.to_owned(), uid)].into_iter().collect(),
        ..v1::PodSandboxFilter::default()
    };
    let request = v1::ListPodSandboxRequest {
        filter: Some(filter),
    };
    let listed = parts.runtime.list_pod_sandbox(request).await;
    let listed = listed.map_err(|error| refused(&error))?.items.into_iter();
    let newest = listed.max_by_key(|sandbox| sandbox.created_at);
    newest
        .map(|sandbox| sandbox.id)
        .ok_or(SessionError::NoSandbox)
}

fn refused(error: &CriError) -> SessionError {
    let words = words(error);
    match error.kind {
        CriErrorKind::NotFound => SessionError::RuntimeNotFound(words),
        CriErrorKind::ResourceExhausted => SessionError::RuntimeExhausted(words),
        _ => SessionError::Runtime(words),
    }
}

/// The error as the kubelet prints a gRPC error.
fn words(error: &CriError) -> String {
    let code = match error.kind.code() {
        Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    };
    format!("rpc error: code = {code} desc = {}", error.message)
}
