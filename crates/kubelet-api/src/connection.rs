//! One connection: handshake, protocol, and its end.

use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rubelet_audit::malformed;
use rubelet_http_core::{
    activity::Activity,
    connections::{ConnectionSlot, RefusalReason},
    listener::SHUTDOWN_GRACE,
    peer::Peer,
    session::{Session, SessionSlot},
    shutdown::Shutdown,
    tracked::TrackedBody,
};
use rubelet_streaming::{Link, SessionSocket};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    client_connection::{Connection, Guards},
    port::{Port, PortSecurity},
    tls::HTTP2,
};

/// Timeout of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Timeout of a request head; also of the time between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);

/// Longest head of a request, in bytes. The kubelet's limit, but only for clients with a valid
/// certificate, such as the API server, which passes on the headers of its own clients. Others can
/// send a token, and need no more.
const LONGEST_HEAD: usize = 1024 * 1024;
const LONGEST_HEAD_WITHOUT_CERTIFICATE: usize = 128 * 1024;

/// Requests at a time on one connection of HTTP/2.
const STREAMS: u32 = 100;

/// A client of HTTP/2 is pinged at this interval, and disconnected if it does not answer in time.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// Serves a connection until it ends.
pub(super) async fn connection(
    accepted: (TcpStream, Peer),
    slot: ConnectionSlot,
    port: Arc<Port>,
    stopped: Shutdown,
) {
    // Boxed, and dropped when a session begins: the state of HTTP and the handshake is many times
    // the size of an idle session, and would be kept as long as the session.
    let session = Box::pin(until_session(accepted, slot, port, stopped)).await;
    if let Some(session) = session {
        session.run().await;
    }
}

/// Serves a connection until it ends or becomes a session.
async fn until_session(
    (stream, peer): (TcpStream, Peer),
    slot: ConnectionSlot,
    port: Arc<Port>,
    mut stopped: Shutdown,
) -> Option<Session<Guards>> {
    let activity = Activity::new(slot);
    // Lines of a followed log are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "Cannot disable Nagle's algorithm on a connection");
    }
    let stream = SessionSocket::new(stream);
    let link = Link::of(&stream);
    let PortSecurity::Secure { tls, access } = &port.guard else {
        let unauthenticated = Connection {
            certificates: Vec::new(),
            activity,
            peer,
            longest_head: LONGEST_HEAD_WITHOUT_CERTIFICATE,
            session: SessionSlot::default(),
        };
        return requests(stream, Protocol::Http1, unauthenticated, port, stopped).await;
    };
    let bundle = match &access.client_ca {
        Some(ca) => Some(ca.bundle().await),
        None => None,
    };
    let acceptor = TlsAcceptor::from(tls.get(bundle.as_ref()));
    let handshake = async {
        // A silent client gets no TLS buffers yet, and counts as idle until its first byte.
        stream.readable().await?;
        activity.progress();
        acceptor.accept(stream).await
    };
    let accepted = tokio::select! {
        () = stopped.requested() => return None,
        accepted = timeout(HANDSHAKE, handshake) => accepted,
    };
    activity.progress();
    let stream = match accepted {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            port.observer.handshake_failed();
            tracing::debug!(%error, "A TLS handshake failed");
            return None;
        }
        Err(_) => {
            port.observer.handshake_failed();
            tracing::debug!("A TLS handshake timed out");
            return None;
        }
    };
    let (protocol, certificates) = agreed(&stream);
    let known = bundle.is_some_and(|bundle| matches!(bundle.user(&certificates), Ok(Some(_))));
    if known {
        activity.prove();
    }
    let connection = Connection {
        certificates,
        activity,
        peer,
        longest_head: if known {
            LONGEST_HEAD
        } else {
            LONGEST_HEAD_WITHOUT_CERTIFICATE
        },
        session: SessionSlot::over(link),
    };
    requests(stream, protocol, connection, port, stopped).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

fn agreed(
    stream: &TlsStream<SessionSocket>,
) -> (Protocol, Vec<rustls::pki_types::CertificateDer<'static>>) {
    let (_, session) = stream.get_ref();
    let protocol = if session.alpn_protocol() == Some(HTTP2) {
        Protocol::Http2
    } else {
        Protocol::Http1
    };
    let certificates = session.peer_certificates().unwrap_or_default();
    (protocol, certificates.to_vec())
}

fn http1(longest_head: usize) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(longest_head);
    builder
}

fn http2(longest_head: usize) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(longest_head as u32)
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .max_send_buf_size(64 * 1024);
    builder
}

async fn requests<I>(
    stream: I,
    protocol: Protocol,
    connection: Connection,
    port: Arc<Port>,
    stopped: Shutdown,
) -> Option<Session<Guards>>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::clone(&connection.activity);
    let longest_head = connection.longest_head;
    let connection = Arc::new(connection);
    let (audit, peer) = (port.audit.clone(), connection.peer);
    let (for_requests, own) = (stopped.clone(), Arc::clone(&connection));
    let service = service_fn(move |request: Request<Incoming>| {
        let (port, connection) = (Arc::clone(&port), Arc::clone(&connection));
        let shutdown = for_requests.clone();
        async move {
            let answer = port.handle(request, &connection, shutdown).await;
            Ok::<Response<TrackedBody<Guards>>, Infallible>(answer)
        }
    });
    let io = TokioIo::new(stream);
    let ended = match protocol {
        Protocol::Http1 => {
            let served = http1(longest_head).serve_connection(io, service);
            let served = pin!(served.with_upgrades());
            let stop = |served: Pin<&mut http1::UpgradeableConnection<_, _>>| {
                served.graceful_shutdown();
            };
            until_end(served, stop, &activity, stopped).await
        }
        // No upgrades in HTTP/2.
        Protocol::Http2 => {
            let served = pin!(http2(longest_head).serve_connection(io, service));
            let stop = |served: Pin<&mut http2::Connection<_, _, _>>| served.graceful_shutdown();
            until_end(served, stop, &activity, stopped).await
        }
    }?;
    if let Err(error) = ended {
        tracing::debug!(%error, "A connection closed early");
        if let Some(log) = audit {
            malformed(&log, peer, &error);
        }
        return None;
    }
    own.session.take()
}

/// Serves a connection until it ends, is idle for too long, or the server stops; `stop` shuts it
/// down. `None` if it does not end in time.
async fn until_end<C: Future>(
    mut served: Pin<&mut C>,
    stop: impl Fn(Pin<&mut C>),
    activity: &Activity,
    mut stopped: Shutdown,
) -> Option<C::Output> {
    tokio::select! {
        ended = served.as_mut() => Some(ended),
        reason = activity.idle() => {
            if let Some(reason) = reason {
                activity.refused(reason);
            }
            if reason == Some(RefusalReason::Stalled) {
                return None;
            }
            stop(served.as_mut());
            timeout(SHUTDOWN_GRACE, served).await.ok()
        }
        () = stopped.requested() => {
            stop(served.as_mut());
            Some(served.await)
        }
    }
}
