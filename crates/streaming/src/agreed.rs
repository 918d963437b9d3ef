//! Sessions after an agreement: the response, and the session with a process or with ports.

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use rubelet_cri::CriResult;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    PortDialer, RemoteProcess, ServeOptions, SessionKind, StdStreams, io, negotiate::Agreed,
    spdy_server, websocket,
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
        ..
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

/// Serves port-forward with a client. Those of channels have named their ports (`named`) before.
pub(crate) async fn ports<I>(
    io: I,
    agreed: Agreed,
    named: Vec<u16>,
    dialer: Arc<dyn PortDialer>,
    options: ServeOptions,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ServeOptions {
        idle_timeout,
        shutdown,
        ..
    } = options;
    match agreed {
        Agreed::Spdy { .. } => {
            spdy_server::ports(io::duplex(io), dialer, idle_timeout, shutdown).await;
        }
        Agreed::Tunnel => {
            let transport = websocket::tunnel(io).await;
            spdy_server::ports(transport, dialer, idle_timeout, shutdown).await;
        }
        Agreed::Channels(protocol) => {
            websocket::ports(io, protocol, named, dialer, idle_timeout, shutdown).await;
        }
    }
}

/// `101` with these headers.
pub(crate) fn switching(headers: HeaderMap) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}
