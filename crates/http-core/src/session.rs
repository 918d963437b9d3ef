//! Sessions (exec, attach, port-forward): how a connection of HTTP becomes a session.
//!
//! A listener answers such a request with [`begin`]. The session waits in the connection's
//! [`SessionSlot`] until its answer is sent; then HTTP is over, and the task of the connection runs
//! the session. What is known of the connection as one of HTTP is freed before: sessions may be idle
//! for hours, and there may be a thousand.

mod ports;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use parking_lot::Mutex;
use rubelet_streaming::{Link, ServeOptions, SessionFuture, SessionTarget, Upgrade, upgrade};

pub use self::ports::{PortError, ports};
use crate::{activity::OpenRequest, connections::SessionPermit, shutdown::Shutdown};

/// The session of a connection, from its answer to the end of HTTP.
pub struct SessionSlot<G> {
    session: Mutex<Option<Session<G>>>,
    link: Option<Link>,
}

impl<G> Default for SessionSlot<G> {
    fn default() -> Self {
        Self::over(None)
    }
}

/// A session, and what lasts as long as it does: the connection's place, the count of requests under
/// way, and the guards of its server.
pub struct Session<G> {
    future: SessionFuture,
    _permit: SessionPermit,
    tracked: Option<Tracked<G>>,
}

/// Resources that are released with a request.
pub struct Tracked<G> {
    /// The request, for the connection's [`Activity`](crate::activity::Activity).
    pub open: OpenRequest,
    /// The server's own: an entry in its audit log, or a metric of requests in progress.
    pub guards: G,
}

impl<G> SessionSlot<G> {
    /// The slot of a connection over that link: a session ends if its network is cut.
    #[must_use]
    pub const fn over(link: Option<Link>) -> Self {
        Self {
            session: Mutex::new(None),
            link,
        }
    }

    /// Keeps what ends with the request, if there is a session; else gives it back.
    pub fn track(&self, tracked: Tracked<G>) -> Option<Tracked<G>> {
        match &mut *self.session.lock() {
            Some(session) => {
                session.tracked = Some(tracked);
                None
            }
            None => Some(tracked),
        }
    }

    /// The session, once HTTP is over.
    #[must_use]
    pub fn take(&self) -> Option<Session<G>> {
        self.session.lock().take()
    }
}

impl<G> Session<G> {
    /// Runs to the end of the session.
    pub async fn run(self) {
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
/// is in `slot`. An `idle_timeout` of zero means no limit.
pub async fn begin<G>(
    request: Request<Incoming>,
    target: SessionTarget,
    idle_timeout: Duration,
    permit: SessionPermit,
    slot: &SessionSlot<G>,
    mut shutdown: Shutdown,
) -> Response<Bytes> {
    let options = ServeOptions {
        idle_timeout,
        shutdown: Box::pin(async move { shutdown.requested().await }),
        link: slot.link.clone(),
    };
    let Upgrade { response, session } = upgrade(request, target, options).await;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(future) = session
    {
        *slot.session.lock() = Some(Session {
            future,
            _permit: permit,
            tracked: None,
        });
    }
    response
}

/// The message if all slots for sessions are taken.
pub const TOO_MANY: &str =
    "this node has as many sessions (exec, attach, port-forward) as it allows; end some of them";

/// The message for a request for a session that has a body: where that ends and the session begins,
/// a proxy may have seen otherwise.
pub const NO_BODY: &str = "a request for a session (exec, attach, port-forward) has no body";

/// True where the client asks for a WebSocket, in the way that the kubelet recognizes one.
#[must_use]
pub fn is_websocket(headers: &HeaderMap) -> bool {
    let is_asked = headers
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let connection = headers.get(header::CONNECTION);
    let connection = connection.and_then(|value| value.to_str().ok());
    is_asked && connection.is_some_and(|value| tokens(value).any(|token| token == "upgrade"))
}

/// True where the client asks for a WebSocket with that protocol.
#[must_use]
pub fn is_websocket_with(headers: &HeaderMap, protocol: &str) -> bool {
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
pub const STREAM_CLOSE: &str = "v5.channel.k8s.io";

/// SPDY through a WebSocket, for ports.
pub const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

#[cfg(test)]
mod tests;
