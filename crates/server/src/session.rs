//! Sessions with containers: what a client asks of the node, and how a connection becomes a session.
//!
//! A listener answers such a request with [`begin`]. The session waits in the connection's
//! [`SessionSlot`] until its answer is sent; then HTTP is over, and the task of the connection runs
//! the session. What is known of the connection as one of HTTP is freed before: sessions may be idle
//! for hours, and there may be a thousand.

pub(crate) mod local;
mod ports;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use parking_lot::Mutex;
use rubelet_streaming::{ServeOptions, SessionFuture, SessionTarget, StdStreams, Upgrade, upgrade};

pub(crate) use self::ports::{PortError, ports};
use crate::{
    NodeView, PodRef, activity::OpenRequest, audit::AuditedRequest, connections::SessionPermit,
    secure::Observed, shutdown::Shutdown,
};

/// A request for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// The pod.
    pub pod: PodRef,
    /// Its UID, where the client insists on one.
    pub uid: Option<String>,
    /// The requested action.
    pub action: SessionAction,
}

/// The action of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionAction {
    /// A command in a running container.
    Exec {
        /// Name of the container.
        container: String,
        /// The command and its arguments.
        command: Vec<String>,
        /// The standard streams of the client.
        streams: StdStreams,
    },
    /// The first process of a running container. Whether it has a terminal is said by its definition.
    Attach {
        /// Name of the container.
        container: String,
        /// The standard streams of the client.
        streams: StdStreams,
    },
    /// Ports of the pod.
    PortForward {
        /// Ports in the request; SPDY names them later, one by one.
        ports: Vec<u16>,
    },
}

/// A command whose output is the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// The pod.
    pub pod: PodRef,
    /// Its UID, where the client insists on one.
    pub uid: Option<String>,
    /// Name of the container.
    pub container: String,
    /// The command and its arguments.
    pub command: Vec<String>,
}

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There is no pod of that name.
    #[error("pod does not exist")]
    NoPod,
    /// The pod of that name has another UID.
    #[error("pod not found")]
    OtherUid,
    /// The container does not run, or there is none of that name.
    #[error("the container does not run")]
    NotRunning,
    /// The pod has no ready sandbox.
    #[error("the pod has no ready sandbox")]
    NoSandbox,
    /// The runtime does not know what it was asked for.
    #[error("{0}")]
    RuntimeNotFound(String),
    /// The runtime has too many sessions.
    #[error("{0}")]
    RuntimeExhausted(String),
    /// The runtime failed, or the command did.
    #[error("{0}")]
    Runtime(String),
}

/// The session of a connection, from its answer to the end of HTTP.
#[derive(Default)]
pub(crate) struct SessionSlot(Mutex<Option<Session>>);

/// A session, and what lasts as long as it does: the connection's place, the entry in the audit log, the
/// count of requests under way.
pub(crate) struct Session {
    future: SessionFuture,
    _permit: SessionPermit,
    tracked: Option<Tracked>,
}

/// Resources that are released with a request.
pub(crate) struct Tracked {
    pub(crate) open: OpenRequest,
    pub(crate) observed: Option<Observed>,
    pub(crate) audited: Option<AuditedRequest>,
}

impl SessionSlot {
    /// Keeps what ends with the request, if there is a session; else gives it back.
    pub(crate) fn track(&self, tracked: Tracked) -> Option<Tracked> {
        match &mut *self.0.lock() {
            Some(session) => {
                session.tracked = Some(tracked);
                None
            }
            None => Some(tracked),
        }
    }

    /// The session, once HTTP is over.
    pub(crate) fn take(&self) -> Option<Session> {
        self.0.lock().take()
    }
}

impl Session {
    /// Runs to the end of the session.
    pub(crate) async fn run(self) {
        let Self {
            future,
            _permit,
            tracked,
        } = self;
        future.await;
        drop(tracked);
    }
}

/// Answers a request for a session with `target`. Where that is `101 Switching Protocols`, the session
/// is in `slot`.
pub(crate) async fn begin(
    view: &dyn NodeView,
    request: Request<Incoming>,
    target: SessionTarget,
    permit: SessionPermit,
    slot: &SessionSlot,
    mut shutdown: Shutdown,
) -> Response<Bytes> {
    let options = ServeOptions {
        idle_timeout: view.session_idle_timeout(),
        shutdown: Box::pin(async move { shutdown.requested().await }),
    };
    let Upgrade { response, session } = upgrade(request, target, options).await;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(future) = session
    {
        *slot.0.lock() = Some(Session {
            future,
            _permit: permit,
            tracked: None,
        });
    }
    response
}

/// The message if all slots for sessions are taken.
pub(crate) const TOO_MANY: &str =
    "this node has as many sessions (exec, attach, port-forward) as it allows; end some of them";

/// The message for a request for a session that has a body: where that ends and the session begins,
/// a proxy may have seen otherwise.
pub(crate) const NO_BODY: &str = "a request for a session (exec, attach, port-forward) has no body";

/// True where the client asks for a WebSocket, in the way that the kubelet recognizes one.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    let is_asked = headers
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let connection = headers.get(header::CONNECTION);
    let connection = connection.and_then(|value| value.to_str().ok());
    is_asked && connection.is_some_and(|value| tokens(value).any(|token| token == "upgrade"))
}

/// True where the client asks for a WebSocket with that protocol.
pub(crate) fn is_websocket_with(headers: &HeaderMap, protocol: &str) -> bool {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered.filter_map(|value| value.to_str().ok());
    is_websocket(headers) && offered.any(|value| value.split(',').any(|one| one.trim() == protocol))
}

fn tokens(value: &str) -> impl Iterator<Item = String> + '_ {
    value
        .split(',')
        .map(|token| token.trim().to_ascii_lowercase())
}

/// The protocol of WebSockets on which a stream can be closed for itself.
pub(crate) const STREAM_CLOSE: &str = "v5.channel.k8s.io";

/// SPDY through a WebSocket, for ports.
pub(crate) const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

#[cfg(test)]
mod tests;
