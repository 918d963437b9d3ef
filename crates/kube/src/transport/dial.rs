//! Making a connection: name, TCP, proxy, TLS, and the protocol that the server chose.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

use super::{
    RequestKind, TransportError,
    alert::AlertReader,
    http2::{Connection, MAX_STREAMS},
    proxy::{HttpProxy, ProxyError},
    tls::{self, RootsError, Tls},
};
use crate::{
    config::{ClientConfig, Connector, Proxy, Stream},
    identity::ClientIdentity,
    server_url::ServerUrl,
};

/// From the name to the first request.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// For the name alone. Less than for all, so that the error says what did not answer.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(9);
/// For each address of a name that has several.
const MIN_TIMEOUT_PER_ADDRESS: Duration = Duration::from_secs(2);
/// A silent connection is pinged after this time...
const PING_AFTER: Duration = Duration::from_secs(30);
/// ...and closed if there is no answer within this time.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of queued bytes of one request.
const SEND_BUFFER: usize = 64 * 1024;
/// No API server sends more headers.
const HEADER_LIST_SIZE: u32 = 64 * 1024;

/// Bytes that the server may send before they are read: what is in flight occupies memory.
struct FlowControlWindows {
    /// Of one answer.
    stream: u32,
    /// Of all answers together.
    connection: u32,
}

impl FlowControlWindows {
    fn of(purpose: RequestKind) -> Self {
        match purpose {
            RequestKind::Request => Self {
                stream: 256 * 1024,
                connection: 1024 * 1024,
            },
            // Room for all that may be open at a time, so that watches that are not read at the
            // moment do not hold up the others.
            RequestKind::Watch => Self {
                stream: 64 * 1024,
                connection: 64 * 1024 * MAX_STREAMS,
            },
        }
    }
}

/// Why a client can't be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error("invalid TLS server name {0}")]
    ServerName(String),
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
}

pub(super) struct Dialer {
    server: ServerUrl,
    /// With the name that the server's certificate must be for.
    tls: Option<(Tls, ServerName<'static>)>,
    proxy: Option<HttpProxy>,
    connector: Option<Connector>,
}

/// A connection, ready for requests.
pub(super) enum Dialed {
    Http2(Connection),
    Http1(http1::SendRequest<Full<Bytes>>),
}

impl Dialer {
    pub(super) fn new(config: ClientConfig, identity: ClientIdentity) -> Result<Self, SetupError> {
        let server = config.server;
        let tls = if server.is_https() {
            let name = config.tls_server_name.as_deref().unwrap_or(server.host());
            let name = ServerName::try_from(name.to_owned())
                .map_err(|_| SetupError::ServerName(name.to_owned()))?;
            let insecure = config.insecure_skip_tls_verify;
            Some((Tls::new(config.roots, insecure, identity)?, name))
        } else {
            None
        };
        let proxy = match &config.proxy {
            Proxy::Direct => None,
            Proxy::Http(_) if tls.is_none() => return Err(ProxyError::PlainServer.into()),
            Proxy::Http(url) => Some(HttpProxy::parse(url)?),
            Proxy::Environment => {
                HttpProxy::from_environment(&server, |name| std::env::var(name).ok())?
            }
        };
        Ok(Self {
            server,
            tls,
            proxy,
            connector: config.connector,
        })
    }

    /// Connects. `purpose` decides how much may be in flight.
    pub(super) async fn dial(&self, purpose: RequestKind) -> Result<Dialed, TransportError> {
        timeout(DIAL_TIMEOUT, self.connect(purpose))
            .await
            .unwrap_or(Err(TransportError::Slow(DIAL_TIMEOUT.as_secs())))
    }

    async fn connect(&self, purpose: RequestKind) -> Result<Dialed, TransportError> {
        let stream = match &self.connector {
            Some(connector) => (connector.connect)()
                .await
                .map_err(TransportError::Connector)?,
            None => self.reach().await?,
        };
        let http2 = self
            .connector
            .as_ref()
            .is_some_and(|connector| connector.http2);
        let Some((tls, name)) = &self.tls else {
            return handshake(stream, http2, purpose).await;
        };
        let connector = TlsConnector::from(tls.config().await);
        let stream = connector
            .connect(name.clone(), stream)
            .await
            .map_err(|source| TransportError::Tls {
                host: self.server.authority().to_owned(),
                advice: tls::advice(&source),
                source,
            })?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        handshake(Box::new(AlertReader::new(stream)), http2, purpose).await
    }

    /// A TCP connection to the server, through the proxy where there is one.
    async fn reach(&self) -> Result<Box<dyn Stream>, TransportError> {
        let Some(proxy) = &self.proxy else {
            return tcp(self.server.host(), self.server.port()).await;
        };
        let mut stream = tcp(proxy.host(), proxy.port()).await?;
        let (host, port) = (self.server.host(), self.server.port());
        let target = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        let asked = proxy.ask(&mut stream, &target).await;
        asked.map_err(|source| TransportError::Proxy {
            proxy: proxy.to_string(),
            target,
            source,
        })?;
        Ok(stream)
    }
}

async fn tcp(host: &str, port: u16) -> Result<Box<dyn Stream>, TransportError> {
    let unresolved = |source| TransportError::Resolve {
        host: host.to_owned(),
        source,
    };
    let lookup = tokio::net::lookup_host((host, port));
    let addresses: Vec<_> = resolved(lookup).await.map_err(unresolved)?.collect();
    let share = u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let patience = (DIAL_TIMEOUT / share).max(MIN_TIMEOUT_PER_ADDRESS);
    let mut last = unresolved(io::Error::from(io::ErrorKind::NotFound));
    for address in addresses {
        let connected = timeout(patience, TcpStream::connect(address))
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match connected {
            Ok(stream) => {
                notice_death(&stream);
                return Ok(Box::new(stream));
            }
            Err(source) => last = TransportError::Connect { address, source },
        }
    }
    Err(last)
}

/// What a look-up of a name finds. A resolver may wait much longer for a name server that does not answer.
async fn resolved<T>(lookup: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(LOOKUP_TIMEOUT, lookup).await.unwrap_or_else(|_| {
        let seconds = LOOKUP_TIMEOUT.as_secs();
        let error = format!("no name server answered within {seconds}s");
        Err(io::Error::new(io::ErrorKind::TimedOut, error))
    })
}

/// Makes the kernel find out when the other side is gone. HTTP/2 has pings for that; HTTP/1.1 has
/// nothing. What can't be set is not worth a connection.
fn notice_death(stream: &TcpStream) {
    let silence = PING_AFTER + PING_TIMEOUT;
    let set = stream
        .set_nodelay(true)
        .and_then(|()| Ok(sockopt::set_socket_keepalive(stream, true)?))
        .and_then(|()| Ok(sockopt::set_tcp_keepidle(stream, PING_AFTER)?))
        .and_then(|()| Ok(sockopt::set_tcp_keepintvl(stream, PING_TIMEOUT / 3)?))
        .and_then(|()| Ok(sockopt::set_tcp_keepcnt(stream, 3)?))
        .and_then(|()| {
            let milliseconds = u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
            Ok(sockopt::set_tcp_user_timeout(stream, milliseconds)?)
        });
    if let Err(error) = set {
        tracing::debug!(%error, "Cannot set TCP keepalive; a dead API server is noticed late");
    }
}

async fn handshake(
    stream: Box<dyn Stream>,
    http2: bool,
    purpose: RequestKind,
) -> Result<Dialed, TransportError> {
    let stream = TokioIo::new(stream);
    if !http2 {
        let (sender, connection) = http1::handshake(stream)
            .await
            .map_err(TransportError::Handshake)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "A connection to the API server broke");
            }
        });
        return Ok(Dialed::Http1(sender));
    }
    let windows = FlowControlWindows::of(purpose);
    let (sender, mut connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(windows.stream)
        .initial_connection_window_size(windows.connection)
        .max_header_list_size(HEADER_LIST_SIZE)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .handshake(stream)
        .await
        .map_err(TransportError::Handshake)?;
    let allowed = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
    let current = Arc::clone(&allowed);
    // Ends by itself: when the last sender and the last stream are dropped, or the server closes.
    tokio::spawn(async move {
        let ended = poll_fn(|context| {
            let polled = Pin::new(&mut connection).poll(context);
            current.store(connection.current_max_send_streams(), Ordering::Relaxed);
            polled
        });
        if let Err(error) = ended.await {
            tracing::debug!(%error, "A connection to the API server broke");
        }
    });
    Ok(Dialed::Http2(Connection::new(
        sender,
        allowed,
        Instant::now(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_name_server_that_does_not_answer_is_named_before_the_connection_is_given_up() {
        let begun = Instant::now();
        let error = resolved(std::future::pending::<io::Result<()>>())
            .await
            .expect_err("nobody answers");
        assert_eq!(error.to_string(), "no name server answered within 9s");
        assert!(begun.elapsed() < DIAL_TIMEOUT);
    }
}
