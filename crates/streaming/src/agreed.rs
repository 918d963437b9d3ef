//! Sessions after an agreement: the response, and the session with a process.

use std::future::Future;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use rubelet_cri::CriResult;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    RemoteProcess, ServeOptions, SessionKind, StdStreams, io, negotiate::Agreed, spdy_server,
    websocket,
};

/// Serves exec or attach with a client.
pub(crate) async fn process<I>(
    io: I,
    agreed: Agreed,
    what: (SessionKind, StdStreams),
    open: impl Future<Output = CriResult<RemoteProcess>> + Send,
    options: ServeOptions,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ServeOptions {
        idle_timeout,
        shutdown,
    } = options;
    match agreed {
        Agreed::Spdy { form, sizes } => {
            let transport = io::duplex(io);
            let protocol = (form, sizes);
            spdy_server::process(transport, what, protocol, open, idle_timeout, shutdown).await;
        }
        Agreed::Channels(protocol) => {
            websocket::process(io, what, protocol, open, idle_timeout, shutdown).await;
        }
        // Only port-forward has it.
        Agreed::Tunnel => {}
    }
}

/// `101` with these headers.
pub(crate) fn switching(headers: HeaderMap) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}
