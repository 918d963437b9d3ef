//! One connection: handshake, protocol, and its end.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    port::{Connection, Guard, Port},
    tls::HTTP2,
};
use crate::{
    activity::Activity,
    audit::malformed,
    connections::{RefusalReason, Slot},
    peer::Peer,
    serve::Shutdown,
    tracked::TrackedBody,
};

/// A client that has not finished its handshake by then is left.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A client that takes longer for the head of a request is left; one that waits between two
/// requests, too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);

/// Longest head of a request, in bytes. As the kubelet has it, but only for clients that have shown
/// a good certificate, such as the API server, which hands on what its own clients send it. Others
/// can send a token, and need no more.
const LONGEST_HEAD: usize = 1024 * 1024;
const LONGEST_HEAD_OF_STRANGER: usize = 128 * 1024;

/// Requests at a time on one connection of HTTP/2.
const STREAMS: u32 = 100;

/// A client of HTTP/2 that is asked so often whether it is there, and does not answer in time, is
/// gone.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// What a connection that is to end may still send.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves a connection until it ends.
pub(super) async fn connection(
    (stream, peer): (TcpStream, Peer),
    slot: Slot,
    port: Arc<Port>,
    mut stopped: Shutdown,
) {
    let activity = Activity::new(slot);
    // Lines of a followed log are small and shall not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its small packets back");
    }
    let Guard::Secure { tls, access } = &port.guard else {
        let stranger = Connection {
            certificates: Vec::new(),
            activity,
            peer,
            longest_head: LONGEST_HEAD_OF_STRANGER,
        };
        return requests(stream, Protocol::Http1, stranger, port, stopped).await;
    };
    let bundle = match &access.client_ca {
        Some(ca) => Some(ca.bundle().await),
        None => None,
    };
    let acceptor = TlsAcceptor::from(tls.get(bundle.as_ref()));
    let handshake = async {
        // A silent client has no buffers of TLS, and is told from one that has begun.
        stream.readable().await?;
        activity.progress();
        acceptor.accept(stream).await
    };
    let accepted = tokio::select! {
        () = stopped.requested() => return,
        accepted = timeout(HANDSHAKE, handshake) => accepted,
    };
    activity.progress();
    let stream = match accepted {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            port.observer.handshake_failed();
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
        Err(_) => {
            port.observer.handshake_failed();
            tracing::debug!("a TLS handshake took too long");
            return;
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
            LONGEST_HEAD_OF_STRANGER
        },
    };
    requests(stream, protocol, connection, port, stopped).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

fn agreed(
    stream: &TlsStream<TcpStream>,
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

fn builder(protocol: Protocol, longest_head: usize) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    match protocol {
        Protocol::Http1 => {
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(longest_head);
            builder.http1_only()
        }
        Protocol::Http2 => {
            builder
                .http2()
                .timer(TokioTimer::new())
                .max_header_list_size(longest_head as u32)
                .max_concurrent_streams(STREAMS)
                .keep_alive_interval(PING)
                .keep_alive_timeout(PONG)
                .max_send_buf_size(64 * 1024);
            builder.http2_only()
        }
    }
}

async fn requests<I>(
    stream: I,
    protocol: Protocol,
    connection: Connection,
    port: Arc<Port>,
    mut stopped: Shutdown,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::clone(&connection.activity);
    let longest_head = connection.longest_head;
    let connection = Arc::new(connection);
    let (audit, peer) = (port.audit.clone(), connection.peer);
    let for_requests = stopped.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (port, connection) = (Arc::clone(&port), Arc::clone(&connection));
        let shutdown = for_requests.clone();
        async move {
            let answer = port.handle(request, &connection, shutdown).await;
            Ok::<Response<TrackedBody>, Infallible>(answer)
        }
    });
    let builder = builder(protocol, longest_head);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        reason = activity.idle() => {
            if let Some(reason) = reason {
                activity.refused(reason);
            }
            if reason == Some(RefusalReason::Stalled) {
                return;
            }
            served.as_mut().graceful_shutdown();
            match timeout(LAST_WORDS, served).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
        () = stopped.requested() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
        let error = error.downcast_ref::<hyper::Error>();
        if let (Some(log), Some(error)) = (audit, error) {
            malformed(&log, peer, error);
        }
    }
}
