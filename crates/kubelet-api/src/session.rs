//! `/exec`, `/attach`, `/portForward` and `/run`: the kubelet's paths, queries and words.
//!
//! Source: Kubernetes 1.36, `pkg/kubelet/server/server.go` and `k8s.io/cri-streaming`.

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use rubelet_http_core::{
    query::Query,
    respond::{self, Body},
    session::{self, PortError, STREAM_CLOSE, TOO_MANY, TUNNEL},
    shutdown::Shutdown,
};
use rubelet_server::{NodeView, PodRef, RunRequest, SessionAction, SessionError, SessionRequest};
use rubelet_streaming::{SessionKind, StdStreams, wants_upgrade};

use super::{
    client_connection::Connection, observe::RequestObserver, plain_text::text,
    session_path::SessionPath,
};

/// The `Retry-After` of a response to a client if there are too many sessions, in seconds, as the
/// kubelet's library sends it.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("60");

/// Answers a request for a session.
pub(super) async fn session(
    view: &dyn NodeView,
    (kind, path): (SessionKind, SessionPath),
    request: Request<Incoming>,
    connection: &Connection,
    observer: &dyn RequestObserver,
    shutdown: Shutdown,
) -> Response<Body> {
    if !request.body().is_end_stream() {
        return text(StatusCode::BAD_REQUEST, session::NO_BODY);
    }
    let query = Query::lenient(request.uri().query());
    let asked = match read(kind, path, &query, request.headers()) {
        Ok(asked) => asked,
        Err(why) => return text(StatusCode::BAD_REQUEST, &why),
    };
    let Some(permit) = connection.activity.begin_session() else {
        return too_many(TOO_MANY);
    };
    let target = match view.session(&asked).await {
        Ok(target) => target,
        Err(error) => return refusal(&error, &asked),
    };
    if !wants_upgrade(request.headers()) {
        // The kubelet's proxy calls that its own failure.
        return text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Upgrade request required\n",
        );
    }
    if let Some(subresource) = counted(kind, request.headers()) {
        observer.websocket(subresource);
    }
    let (idle_timeout, slot) = (view.session_idle_timeout(), &connection.session);
    let answer = session::begin(request, target, idle_timeout, permit, slot, shutdown).await;
    respond::plain(answer)
}

/// The metric label of a request whose WebSocket the kubelet translates by itself.
fn counted(kind: SessionKind, headers: &HeaderMap) -> Option<&'static str> {
    let (subresource, protocol) = match kind {
        SessionKind::Exec => ("exec", STREAM_CLOSE),
        SessionKind::Attach => ("attach", STREAM_CLOSE),
        SessionKind::PortForward => ("portforward", TUNNEL),
    };
    session::is_websocket_with(headers, protocol).then_some(subresource)
}

fn read(
    kind: SessionKind,
    path: SessionPath,
    query: &Query,
    headers: &HeaderMap,
) -> Result<SessionRequest, String> {
    let SessionPath {
        pod,
        uid,
        container,
    } = path;
    let action = match kind {
        SessionKind::Exec => SessionAction::Exec {
            container,
            command: query.all("command").map(str::to_owned).collect(),
            streams: streams(query)?,
        },
        SessionKind::Attach => SessionAction::Attach {
            container,
            streams: streams(query)?,
        },
        SessionKind::PortForward => SessionAction::PortForward {
            ports: ports(query, headers).map_err(|error| error.to_string())?,
        },
    };
    Ok(SessionRequest { pod, uid, action })
}

fn streams(query: &Query) -> Result<StdStreams, String> {
    let is_on = |key: &str| query.first(key) == Some("1");
    let tty = is_on("tty");
    let streams = StdStreams {
        stdin: is_on("input"),
        stdout: is_on("output"),
        // A terminal has one output.
        stderr: is_on("error") && !tty,
        tty,
    };
    if !(streams.stdin || streams.stdout || streams.stderr) {
        return Err("you must specify at least 1 of stdin, stdout, stderr".to_owned());
    }
    Ok(streams)
}

/// Over SPDY, and through a tunnel of it, ports are named one by one.
fn ports(query: &Query, headers: &HeaderMap) -> Result<Vec<u16>, PortError> {
    const KEY: &str = "port";
    if !session::is_websocket(headers) || session::is_websocket_with(headers, TUNNEL) {
        return Ok(Vec::new());
    }
    let ports = session::ports(query, KEY)?;
    match ports.is_empty() {
        true => Err(PortError::Missing(KEY.to_owned())),
        false => Ok(ports),
    }
}

/// Answers `/run`: what the command wrote, standard output first.
pub(super) async fn run(
    view: &dyn NodeView,
    path: SessionPath,
    query: Option<&str>,
) -> Response<Body> {
    let query = Query::lenient(query);
    let command = query.first("cmd").unwrap_or_default();
    let request = RunRequest {
        pod: path.pod,
        uid: path.uid,
        container: path.container,
        command: command.split(' ').map(str::to_owned).collect(),
    };
    match view.run(&request).await {
        Ok(output) if output.is_empty() => respond::empty(StatusCode::OK),
        // The kubelet calls any output that.
        Ok(output) => respond::json_bytes(output),
        Err(error @ SessionError::NoPod) => text(StatusCode::NOT_FOUND, &error.to_string()),
        Err(error) => {
            let why = words(&error, &request.pod, &request.container, false);
            text(StatusCode::INTERNAL_SERVER_ERROR, &why)
        }
    }
}

fn refusal(error: &SessionError, asked: &SessionRequest) -> Response<Body> {
    let (container, is_attach) = match &asked.action {
        SessionAction::Exec { container, .. } => (container.as_str(), false),
        SessionAction::Attach { container, .. } => (container.as_str(), true),
        SessionAction::PortForward { .. } => ("", false),
    };
    let code = match error {
        SessionError::NoPod | SessionError::OtherUid | SessionError::RuntimeNotFound(_) => {
            StatusCode::NOT_FOUND
        }
        SessionError::RuntimeExhausted(why) => return too_many(why),
        SessionError::NotRunning | SessionError::NoSandbox | SessionError::Runtime(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    text(code, &words(error, &asked.pod, container, is_attach))
}

fn words(error: &SessionError, pod: &PodRef, container: &str, is_attach: bool) -> String {
    let full_name = || format!("{}_{}", pod.name, pod.namespace);
    match error {
        SessionError::NotRunning if is_attach => {
            format!("container {container} not found in pod {}", full_name())
        }
        SessionError::NotRunning => format!("container not found ({container:?})"),
        SessionError::NoSandbox => format!("pod not found ({:?})", full_name()),
        other => other.to_string(),
    }
}

fn too_many(why: &str) -> Response<Body> {
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, why);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}
