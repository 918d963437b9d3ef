//! Sessions on the local socket: the paths, queries and messages of the API server.

use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use rubelet_http_core::{
    activity::Activity,
    query::Query,
    resource::Resource,
    respond::{self, ApiResult},
    session::{
        NO_BODY, PortError, SessionSlot, TOO_MANY, TUNNEL, begin, is_websocket, is_websocket_with,
        ports,
    },
    shutdown::Shutdown,
    status::ApiError,
};
use rubelet_streaming::{SessionKind, StdStreams};
use serde_json::Value;

use crate::{NodeView, Object, PodRef, SessionAction, SessionError, SessionRequest};

/// Why only root may open sessions.
pub(crate) const ONLY_ROOT: &str = "only root may open sessions (exec, attach, port-forward) with pods on this socket: containers \
     can have every right on this machine";

/// Names the default container, for requests that name none.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Parses a request for a session.
pub(crate) fn read(
    view: &dyn NodeView,
    pod: PodRef,
    kind: SessionKind,
    query: &Query,
    headers: &HeaderMap,
) -> Result<SessionRequest, ApiError> {
    let items = view.list(Resource::Pods).items;
    let is_meant =
        |object: &&Object| *object.namespace == *pod.namespace && *object.name == *pod.name;
    let object = items
        .iter()
        .find(is_meant)
        .ok_or_else(|| ApiError::not_found(Resource::Pods, &pod.name))?;
    let container = || {
        container(
            &object.to_json(Resource::Pods),
            &pod.name,
            query.get("container"),
        )
    };
    let action = match kind {
        SessionKind::Exec => SessionAction::Exec {
            container: container()?,
            command: command(query)?,
            streams: streams(query)?,
        },
        SessionKind::Attach => SessionAction::Attach {
            container: container()?,
            streams: streams(query)?,
        },
        SessionKind::PortForward => SessionAction::PortForward {
            ports: named_ports(query, headers)
                .map_err(|error| ApiError::bad_request(error.to_string()))?,
        },
    };
    Ok(SessionRequest {
        pod,
        uid: None,
        action,
    })
}

/// Answers a request for a session.
pub(crate) async fn session<G>(
    view: &dyn NodeView,
    asked: SessionRequest,
    request: Request<Incoming>,
    activity: &Activity,
    slot: &SessionSlot<G>,
    shutdown: Shutdown,
) -> ApiResult {
    if !request.body().is_end_stream() {
        return Err(ApiError::bad_request(NO_BODY));
    }
    let too_many = |why: &str| {
        let error = ApiError::of_code(StatusCode::TOO_MANY_REQUESTS, why);
        let mut response = respond::error(&error);
        let wait = HeaderValue::from_static("60");
        response.headers_mut().insert(header::RETRY_AFTER, wait);
        Ok(response)
    };
    let Some(permit) = activity.begin_session() else {
        return too_many(TOO_MANY);
    };
    let target = match view.session(&asked).await {
        Ok(target) => target,
        Err(SessionError::RuntimeExhausted(why)) => return too_many(&why),
        Err(error) => return Err(refusal(error, &asked)),
    };
    let idle_timeout = view.session_idle_timeout();
    let answer = begin(request, target, idle_timeout, permit, slot, shutdown).await;
    Ok(match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => respond::plain(answer),
        _ => respond::as_status(answer),
    })
}

fn refusal(error: SessionError, asked: &SessionRequest) -> ApiError {
    let pod = &asked.pod.name;
    match error {
        SessionError::NoPod | SessionError::OtherUid => ApiError::not_found(Resource::Pods, pod),
        SessionError::NotRunning => {
            let container = match &asked.action {
                SessionAction::Exec { container, .. } | SessionAction::Attach { container, .. } => {
                    container.as_str()
                }
                SessionAction::PortForward { .. } => "",
            };
            ApiError::bad_request(format!(
                "container {container:?} in pod {pod:?} is not running"
            ))
        }
        SessionError::NoSandbox => ApiError::bad_request(format!("pod {pod:?} is not running")),
        SessionError::RuntimeNotFound(message) => ApiError::gone(message),
        SessionError::RuntimeExhausted(message) => {
            ApiError::of_code(StatusCode::TOO_MANY_REQUESTS, message)
        }
        SessionError::Runtime(message) => ApiError::internal(message),
    }
}

fn command(query: &Query) -> Result<Vec<String>, ApiError> {
    let command: Vec<String> = query.all("command").map(str::to_owned).collect();
    match command.first() {
        Some(program) if !program.is_empty() => Ok(command),
        _ => Err(ApiError::bad_request(
            "you must specify the command: one `command` in the query for it and for each argument",
        )),
    }
}

fn streams(query: &Query) -> Result<StdStreams, ApiError> {
    let tty = query.flag("tty")?;
    let streams = StdStreams {
        stdin: query.flag("stdin")?,
        stdout: query.flag("stdout")?,
        // A terminal has a single output stream.
        stderr: query.flag("stderr")? && !tty,
        tty,
    };
    if !(streams.stdin || streams.stdout || streams.stderr) {
        return Err(ApiError::bad_request(
            "you must specify at least 1 of stdin, stdout, stderr",
        ));
    }
    Ok(streams)
}

/// Over SPDY, also when tunneled through a WebSocket, each stream names its port, so the query may
/// name none.
fn named_ports(query: &Query, headers: &HeaderMap) -> Result<Vec<u16>, PortError> {
    const KEY: &str = "ports";
    let ports = ports(query, KEY)?;
    let needs_them = is_websocket(headers) && !is_websocket_with(headers, TUNNEL);
    match ports.is_empty() && needs_them {
        true => Err(PortError::Missing(KEY.to_owned())),
        false => Ok(ports),
    }
}

/// The container that is meant: the named one, the only one, or the one in kubectl's
/// default-container annotation.
pub(crate) fn container(pod: &Value, name: &str, wanted: Option<&str>) -> Result<String, ApiError> {
    let names = |list: &str| -> Vec<&str> {
        let entries = pod["spec"][list].as_array().map(Vec::as_slice);
        let entries = entries.unwrap_or_default().iter();
        entries.filter_map(|one| one["name"].as_str()).collect()
    };
    let regular = names("containers");
    let all = [
        names("initContainers"),
        regular.clone(),
        names("ephemeralContainers"),
    ]
    .concat();
    let annotated = pod["metadata"]["annotations"][DEFAULT_CONTAINER].as_str();
    match (wanted.filter(|wanted| !wanted.is_empty()), &*regular) {
        (Some(wanted), _) if all.contains(&wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => Err(ApiError::bad_request(format!(
            "container {wanted} is not valid for pod {name}"
        ))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => match annotated.filter(|annotated| all.contains(annotated)) {
            Some(annotated) => Ok(annotated.to_owned()),
            None => Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                all.join(" ")
            ))),
        },
    }
}
