//! Connections to the API server, opened on demand and shared by all requests.
//!
//! There are two pools, one for requests and one for watches: a watch that is not read holds back
//! bytes of its whole connection, and a lease must not wait for that. With HTTP/2 each pool is one
//! connection, or more where there are more watches than the server allows on one. With HTTP/1.1
//! each answer has a connection for itself; idle ones are used again.

mod alert;
mod body;
mod dial;
mod http2;
mod proxy;
mod tls;

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::client::conn::http1;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

pub(crate) use self::{body::ResponseBody, dial::SetupError, proxy::ProxyError};
use self::{
    dial::{Dialed, Dialer},
    http2::{Connection, ConnectionPool, StreamGuard},
};
pub use self::{proxy::ProxyConnectError, tls::RootsError};
use crate::{config::ClientConfig, identity::ClientIdentity, server_url::ServerUrl};

/// Why there is no connection, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The server's name does not resolve.
    #[error("cannot resolve {host}")]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The TCP connection failed.
    #[error("cannot connect to {address}")]
    Connect {
        /// The last address that was tried.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The stream that replaces a connection could not be made.
    #[error("cannot connect")]
    Connector(#[source] io::Error),
    /// Connecting took too long.
    #[error("connecting took longer than {0}s")]
    Slow(u64),
    /// The proxy rejected the CONNECT request.
    #[error("proxy {proxy} cannot connect to {target}")]
    Proxy {
        /// The proxy, without password.
        proxy: String,
        /// The requested server.
        target: String,
        /// The failed request to it.
        source: ProxyConnectError,
    },
    /// The TLS handshake failed, mostly because of one of the certificates.
    #[error("the TLS handshake with {host} failed{advice}")]
    Tls {
        /// The server.
        host: String,
        /// Advice, if the cause is known.
        advice: &'static str,
        /// The error.
        source: io::Error,
    },
    /// The certificate authorities can't be read.
    #[error("the certificate authorities cannot be used")]
    Roots(#[source] RootsError),
    /// The server does not use HTTP.
    #[error("the HTTP handshake failed")]
    Handshake(#[source] hyper::Error),
    /// The connection broke before the answer.
    #[error("the connection was lost")]
    Lost(#[source] hyper::Error),
}

/// The connection pool of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A short response.
    Request,
    /// A streaming response.
    Watch,
}

/// A request that may be sent more than once.
#[derive(Debug)]
pub(crate) struct OutgoingRequest {
    pub(crate) method: Method,
    /// Path and query, without the server's base path.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The path is not a valid URI.
    Path,
    TimedOut,
    /// `unsent`: the server has certainly not processed it.
    Failed {
        error: TransportError,
        unsent: bool,
    },
}

pub(crate) struct Transport {
    server: ServerUrl,
    host: HeaderValue,
    dialer: Dialer,
    requests: ConnectionPool,
    watches: ConnectionPool,
    /// The server spoke HTTP/1.1 last time, so that there is no use in waiting for each other.
    http1: AtomicBool,
    idle: Arc<IdleHttp1>,
    /// Number of times that connections were closed on purpose.
    epoch: watch::Sender<u64>,
}

/// Connections of HTTP/1.1 that wait for their next request.
#[derive(Default)]
pub(crate) struct IdleHttp1(Mutex<Vec<(Instant, http1::SendRequest<Full<Bytes>>)>>);

/// More idle connections than this are of no use to a node.
const MAX_IDLE_CONNECTIONS: usize = 4;
/// One that was idle for longer may be closed by the server just while a request is on its way.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30);

/// A request is tried on so many connections before it fails, as long as none of them took it.
const MAX_TRIES: usize = 3;

impl IdleHttp1 {
    fn take(&self) -> Option<http1::SendRequest<Full<Bytes>>> {
        let mut idle = self.lock();
        idle.retain(is_usable);
        idle.pop().map(|(_, sender)| sender)
    }

    fn give(&self, sender: http1::SendRequest<Full<Bytes>>) {
        let mut idle = self.lock();
        idle.retain(is_usable);
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push((Instant::now(), sender));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, http1::SendRequest<Full<Bytes>>)>> {
        self.0.lock()
    }

    fn clear(&self) {
        self.lock().clear();
    }
}

fn is_usable((since, sender): &(Instant, http1::SendRequest<Full<Bytes>>)) -> bool {
    since.elapsed() < MAX_IDLE_TIME && !sender.is_closed()
}

/// A connection that takes one more request.
enum ReadyConnection {
    Http2(StreamGuard),
    Http1(http1::SendRequest<Full<Bytes>>),
}

impl Transport {
    /// Reads the certificate authorities, so that mistakes show at once. `identity` is what the TLS
    /// handshakes show.
    pub(crate) fn new(config: ClientConfig, identity: ClientIdentity) -> Result<Self, SetupError> {
        Ok(Self {
            server: config.server.clone(),
            host: HeaderValue::from_str(config.server.authority())
                .map_err(|_| SetupError::ServerName(config.server.to_string()))?,
            dialer: Dialer::new(config, identity)?,
            requests: ConnectionPool::default(),
            watches: ConnectionPool::default(),
            http1: AtomicBool::new(false),
            idle: Arc::default(),
            epoch: watch::Sender::new(0),
        })
    }

    pub(crate) fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Changes with each [`reload`](Self::reload): watches should reconnect then.
    pub(crate) fn epoch(&self) -> watch::Receiver<u64> {
        self.epoch.subscribe()
    }

    /// New requests use new connections. The old ones close when their last answer has ended.
    pub(crate) fn reload(&self) {
        // In this order, so that a dial that began before does not keep its connection.
        self.epoch.send_modify(|epoch| *epoch += 1);
        self.requests.clear();
        self.watches.clear();
        self.idle.clear();
    }

    /// New watches use a new connection. The old one closes when the last watch on it has ended.
    pub(crate) fn renew_watch_connection(&self) {
        self.watches.clear();
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &self,
        outgoing: &OutgoingRequest,
        purpose: RequestKind,
        deadline: Instant,
    ) -> Result<Response<ResponseBody>, SendError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let connection = timeout_at(deadline, self.ready_connection(purpose))
                .await
                .map_err(|_| SendError::TimedOut)?
                .map_err(|error| SendError::Failed {
                    error,
                    unsent: true,
                })?;
            let sent = match connection {
                ReadyConnection::Http2(stream) => self.send_http2(outgoing, stream, deadline).await,
                ReadyConnection::Http1(sender) => self.send_http1(outgoing, sender, deadline).await,
            };
            match sent {
                Err(SendError::Failed { unsent: true, .. }) if tries < MAX_TRIES => {}
                sent => return sent,
            }
        }
    }

    async fn ready_connection(
        &self,
        purpose: RequestKind,
    ) -> Result<ReadyConnection, TransportError> {
        let pool = match purpose {
            RequestKind::Request => &self.requests,
            RequestKind::Watch => &self.watches,
        };
        if let Some(stream) = pool.pick() {
            return Ok(ReadyConnection::Http2(stream));
        }
        if let Some(sender) = self.idle.take() {
            return Ok(ReadyConnection::Http1(sender));
        }
        let _only_one_dials = if self.http1.load(Ordering::Relaxed) {
            None
        } else {
            let guard = pool.dialing.lock().await;
            if let Some(stream) = pool.pick() {
                return Ok(ReadyConnection::Http2(stream));
            }
            Some(guard)
        };
        let epoch = *self.epoch.borrow();
        match self.dialer.dial(purpose).await? {
            Dialed::Http2(connection) => {
                self.http1.store(false, Ordering::Relaxed);
                let connection: Arc<Connection> = Arc::new(connection);
                let stream = StreamGuard::new(&connection);
                pool.add(connection, || *self.epoch.borrow() == epoch);
                Ok(ReadyConnection::Http2(stream))
            }
            Dialed::Http1(sender) => {
                self.http1.store(true, Ordering::Relaxed);
                Ok(ReadyConnection::Http1(sender))
            }
        }
    }

    async fn send_http2(
        &self,
        outgoing: &OutgoingRequest,
        stream: StreamGuard,
        deadline: Instant,
    ) -> Result<Response<ResponseBody>, SendError> {
        let scheme = if self.server.is_https() {
            "https"
        } else {
            "http"
        };
        let authority = self.server.authority();
        let uri = format!(
            "{scheme}://{authority}{}{}",
            self.server.base(),
            outgoing.path
        );
        let request = request(outgoing, &uri)?;
        let began = Instant::now();
        let mut sender = stream.sender();
        match timeout_at(deadline, sender.try_send_request(request)).await {
            Err(_) => {
                stream.suspect(began);
                Err(SendError::TimedOut)
            }
            Ok(Ok(answer)) => {
                stream.heard(Instant::now());
                Ok(answer.map(|body| ResponseBody::http2(body, stream)))
            }
            Ok(Err(mut failure)) => {
                let unsent = failure.take_message().is_some();
                Err(failed(failure.into_error(), unsent))
            }
        }
    }

    async fn send_http1(
        &self,
        outgoing: &OutgoingRequest,
        mut sender: http1::SendRequest<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<Response<ResponseBody>, SendError> {
        let uri = format!("{}{}", self.server.base(), outgoing.path);
        let mut request = request(outgoing, &uri)?;
        request
            .headers_mut()
            .insert(header::HOST, self.host.clone());
        match timeout_at(deadline, sender.ready()).await {
            Err(_) => return Err(SendError::TimedOut),
            Ok(Err(error)) => return Err(failed(error, true)),
            Ok(Ok(())) => {}
        }
        match timeout_at(deadline, sender.try_send_request(request)).await {
            Err(_) => Err(SendError::TimedOut),
            Ok(Ok(answer)) => {
                let idle = Arc::clone(&self.idle);
                Ok(answer.map(|body| ResponseBody::http1(body, sender, idle)))
            }
            Ok(Err(mut failure)) => {
                let unsent = failure.take_message().is_some();
                Err(failed(failure.into_error(), unsent))
            }
        }
    }
}

fn request(outgoing: &OutgoingRequest, uri: &str) -> Result<Request<Full<Bytes>>, SendError> {
    let mut request = Request::new(Full::new(outgoing.body.clone()));
    *request.method_mut() = outgoing.method.clone();
    *request.uri_mut() = uri.parse::<Uri>().map_err(|_| SendError::Path)?;
    *request.headers_mut() = outgoing.headers.clone();
    Ok(request)
}

fn failed(error: hyper::Error, unsent: bool) -> SendError {
    // A server refuses the streams that it has no room for, and those that came while it was
    // shutting the connection down, without processing them.
    let refused = std::error::Error::source(&error)
        .and_then(|source| source.downcast_ref::<h2::Error>())
        .is_some_and(|error| error.reason() == Some(h2::Reason::REFUSED_STREAM));
    SendError::Failed {
        error: TransportError::Lost(error),
        unsent: unsent || refused,
    }
}

/// Whether a URL is that of a proxy that can be used.
pub(crate) fn check_proxy(url: &str) -> Result<(), ProxyError> {
    proxy::HttpProxy::parse(url).map(drop)
}

#[cfg(test)]
mod tests;
