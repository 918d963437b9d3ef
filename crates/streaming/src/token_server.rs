//! A streaming server for CRI clients: its URLs contain one-time tokens, which are the only
//! authorization. It listens on a loopback port once a URL has been requested.

mod tokens;

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONNECTION};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rubelet_cri::{CriError, CriErrorKind, CriResult, v1};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};

use self::tokens::Tokens;
use crate::{
    Link, ServeOptions, SessionFuture, SessionSocket, SessionTarget, Sessions, Upgrade, upgrade,
};

/// Connections that have not shown a token yet. A local process can open many; it can't lock out
/// others for longer than [`HEAD_TIMEOUT`].
const MAX_WITHOUT_TOKEN: usize = 256;

/// Maximum number of concurrent sessions.
const SESSIONS: usize = 8192;

/// Timeout of a request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// As in upstream's streaming servers.
const IDLE: Duration = Duration::from_secs(4 * 60 * 60);

/// The session that a URL is for.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamingRequest {
    /// `Exec`.
    Exec(v1::ExecRequest),
    /// `Attach`.
    Attach(v1::AttachRequest),
    /// `PortForward`.
    PortForward(v1::PortForwardRequest),
}

impl StreamingRequest {
    fn path(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::Attach(_) => "attach",
            Self::PortForward(_) => "portforward",
        }
    }

    fn call(&self) -> &'static str {
        match self {
            Self::Exec(_) => "Exec",
            Self::Attach(_) => "Attach",
            Self::PortForward(_) => "PortForward",
        }
    }
}

/// The streaming server of a runtime.
pub struct StreamingServer {
    sessions: Weak<dyn Sessions>,
    tokens: Mutex<Tokens>,
    address: OnceCell<SocketAddr>,
    stop: watch::Sender<bool>,
    /// The number of sessions that have ended.
    ended_sessions: watch::Sender<u64>,
}

impl StreamingServer {
    /// A server that does not listen yet.
    #[must_use]
    pub fn new(sessions: Weak<dyn Sessions>) -> Arc<Self> {
        Arc::new(Self {
            sessions,
            tokens: Mutex::default(),
            address: OnceCell::new(),
            stop: watch::channel(false).0,
            ended_sessions: watch::Sender::new(0),
        })
    }

    /// A URL for one session, valid for a minute. The caller has checked the request.
    ///
    /// # Errors
    /// Too many URLs are unused, or no loopback port can be opened.
    pub async fn url_for(self: &Arc<Self>, request: StreamingRequest) -> CriResult<String> {
        let (path, call) = (request.path(), request.call());
        let failed = |error: &std::io::Error| {
            let text = format!("cannot listen for streaming: {error}");
            CriError::new(call, CriErrorKind::Unavailable, text)
        };
        let address = self.address.get_or_try_init(|| self.listen()).await;
        let address = address.map_err(|error| failed(&error))?;
        let token = self.tokens.lock().insert(request, Instant::now());
        let token = token.map_err(|error| {
            CriError::new(call, CriErrorKind::ResourceExhausted, error.to_string())
        })?;
        Ok(format!("http://{address}/{path}/{token}"))
    }

    /// Changes whenever a session has ended and everything that it held is freed.
    #[must_use]
    pub fn ended_sessions(&self) -> watch::Receiver<u64> {
        self.ended_sessions.subscribe()
    }

    /// Ends all sessions and notifies their clients.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    async fn listen(self: &Arc<Self>) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tracing::info!(%address, "Serving streaming sessions");
        tokio::spawn(accept(
            listener,
            Arc::downgrade(self),
            self.stop.subscribe(),
        ));
        Ok(address)
    }

    /// The session of a token, which becomes invalid.
    fn target(&self, path: &str) -> Option<SessionTarget> {
        let (kind, token) = path.strip_prefix('/')?.split_once('/')?;
        let request = self.tokens.lock().take(token, Instant::now())?;
        if request.path() != kind {
            return None;
        }
        let sessions = self.sessions.upgrade()?;
        Some(match request {
            StreamingRequest::Exec(request) => SessionTarget::Exec(request, sessions),
            StreamingRequest::Attach(request) => SessionTarget::Attach(request, sessions),
            StreamingRequest::PortForward(request) => SessionTarget::PortForward(request, sessions),
        })
    }
}

impl Drop for StreamingServer {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn accept(
    listener: TcpListener,
    server: Weak<StreamingServer>,
    mut stopped: watch::Receiver<bool>,
) {
    let without_token = Arc::new(Semaphore::new(MAX_WITHOUT_TOKEN));
    let sessions = Arc::new(Semaphore::new(SESSIONS));
    loop {
        let accepted = tokio::select! {
            // An error means that the server is gone.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "Cannot accept a streaming connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&without_token).try_acquire_owned() else {
            continue;
        };
        let (server, sessions) = (Weak::clone(&server), Arc::clone(&sessions));
        tokio::spawn(connection(
            stream,
            server,
            permit,
            sessions,
            stopped.clone(),
        ));
    }
}

async fn connection(
    stream: TcpStream,
    server: Weak<StreamingServer>,
    permit: OwnedSemaphorePermit,
    sessions: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
) {
    // Keystrokes must not wait for each other.
    let _ = stream.set_nodelay(true);
    let stream = SessionSocket::new(stream);
    let link = Link::of(&stream);
    let begun: Arc<Mutex<Option<SessionFuture>>> = Arc::default();
    let session = Arc::clone(&begun);
    let of_request = Weak::clone(&server);
    let service = service_fn(move |request: Request<Incoming>| {
        let (server, session) = (Weak::clone(&of_request), Arc::clone(&session));
        let (stopped, link) = (stopped.clone(), link.clone());
        async move {
            let mut answer = answer(request, &server, stopped, link).await;
            // Not by turning keep-alive off: "close" in a 101 is an error to Go's clients.
            if answer.session.is_none() {
                let close = HeaderValue::from_static("close");
                answer.response.headers_mut().insert(CONNECTION, close);
            }
            *session.lock() = answer.session;
            Ok::<_, Infallible>(answer.response.map(Full::new))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // Boxed, so that its memory is freed before the session runs.
    if let Err(error) = Box::pin(served).await {
        tracing::debug!(%error, "A streaming connection closed early");
    }
    let session = begun.lock().take();
    if let (Some(session), Ok(_permit)) = (session, sessions.try_acquire()) {
        drop(permit);
        session.await;
        if let Some(server) = server.upgrade() {
            server.ended_sessions.send_modify(|count| *count += 1);
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    server: &Weak<StreamingServer>,
    mut stopped: watch::Receiver<bool>,
    link: Option<Link>,
) -> Upgrade {
    let is_allowed = matches!(*request.method(), Method::GET | Method::POST);
    let server = server.upgrade().filter(|_| is_allowed);
    let target = server.and_then(|server| server.target(request.uri().path()));
    let Some(target) = target else {
        let mut response = Response::new(Bytes::from_static(b"404 page not found\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Upgrade {
            response,
            session: None,
        };
    };
    let options = ServeOptions {
        idle_timeout: IDLE,
        shutdown: Box::pin(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }),
        link,
    };
    upgrade(request, target, options).await
}
