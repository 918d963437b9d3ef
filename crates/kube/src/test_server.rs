//! A small server on streams in memory, for the tests of this crate: time can stand still.

use std::{
    convert::Infallible,
    future::ready,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::{
    body::{Body, Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::DuplexStream,
    sync::{mpsc, watch},
};

use crate::{Client, ClientConfig, ClientOptions, Connector};

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// On which connection, from 1.
    pub(crate) connection: usize,
}

impl ReceivedRequest {
    /// Whether the query has this parameter.
    pub(crate) fn has(&self, parameter: &str) -> bool {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        query.split('&').any(|part| part == parameter)
    }
}

/// What to answer.
pub(crate) enum TestAnswer {
    Json(u16, Value),
    /// With headers.
    With(u16, Vec<(&'static str, String)>, String),
    /// A stream of lines; the sender writes and ends it.
    Lines(mpsc::UnboundedReceiver<String>),
    /// None, ever.
    Hang,
    /// The connection is closed instead.
    Close,
}

impl TestAnswer {
    /// A stream of these lines that stays open, and one to write more.
    pub(crate) fn lines(lines: &[Value]) -> (Self, mpsc::UnboundedSender<String>) {
        let (write, read) = mpsc::unbounded_channel();
        for line in lines {
            write.send(format!("{line}\n")).unwrap();
        }
        (Self::Lines(read), write)
    }
}

type Handler = dyn Fn(&ReceivedRequest) -> TestAnswer + Send + Sync;

#[derive(Clone)]
pub(crate) struct TestServer(Arc<ServerState>);

struct ServerState {
    handler: Box<Handler>,
    asked: Mutex<Vec<ReceivedRequest>>,
    connections: AtomicUsize,
    /// New connections are refused.
    down: AtomicBool,
    /// Changes when all connections must be cut.
    cut: watch::Sender<()>,
    /// Streams allowed on a connection of HTTP/2.
    streams: u32,
}

impl TestServer {
    pub(crate) fn new(
        handler: impl Fn(&ReceivedRequest) -> TestAnswer + Send + Sync + 'static,
    ) -> Self {
        Self::with_streams(100, handler)
    }

    pub(crate) fn with_streams(
        streams: u32,
        handler: impl Fn(&ReceivedRequest) -> TestAnswer + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(ServerState {
            handler: Box::new(handler),
            asked: Mutex::default(),
            connections: AtomicUsize::new(0),
            down: AtomicBool::new(false),
            cut: watch::Sender::new(()),
            streams,
        }))
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.0.asked.lock().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.0.connections.load(Ordering::Relaxed)
    }

    /// Cuts all connections and, while down, makes no new ones.
    pub(crate) fn set_down(&self, down: bool) {
        self.0.down.store(down, Ordering::Relaxed);
        self.0.cut.send_replace(());
    }

    pub(crate) fn config(&self, http2: bool) -> ClientConfig {
        let server = self.clone();
        let connector = Connector::new(move || ready(server.connect(http2)));
        let connector = if http2 { connector.http2() } else { connector };
        ClientConfig::anonymous("http://api.test:8080")
            .unwrap()
            .over(connector)
    }

    pub(crate) fn client(&self, http2: bool) -> Client {
        let options = ClientOptions {
            seed: 1,
            ..ClientOptions::default()
        };
        Client::new(self.config(http2), options).unwrap()
    }

    fn connect(&self, http2: bool) -> std::io::Result<DuplexStream> {
        if self.0.down.load(Ordering::Relaxed) {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        let (here, there) = tokio::io::duplex(64 * 1024);
        let number = self.0.connections.fetch_add(1, Ordering::Relaxed) + 1;
        tokio::spawn(self.clone().serve(TokioIo::new(there), number, http2));
        Ok(here)
    }

    async fn serve(self, stream: TokioIo<DuplexStream>, connection: usize, http2: bool) {
        let mut cut = self.0.cut.subscribe();
        let close = Arc::new(tokio::sync::Notify::new());
        let (server, closing) = (self.clone(), Arc::clone(&close));
        let service = service_fn(move |request| {
            let (server, closing) = (server.clone(), Arc::clone(&closing));
            async move { Ok::<_, Infallible>(server.answer(request, connection, &closing).await) }
        });
        let serving = async {
            if http2 {
                let serving = http2::Builder::new(TokioExecutor::new())
                    .max_concurrent_streams(self.0.streams)
                    .serve_connection(stream, service);
                serving.await.ok();
            } else {
                http1::Builder::new()
                    .serve_connection(stream, service)
                    .await
                    .ok();
            }
        };
        tokio::select! {
            () = serving => {}
            _ = cut.changed() => {}
            () = close.notified() => {}
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: usize,
        close: &tokio::sync::Notify,
    ) -> Response<Lines> {
        let (head, body) = request.into_parts();
        let body = body
            .collect()
            .await
            .map(|body| body.to_bytes())
            .unwrap_or_default();
        let asked = ReceivedRequest {
            method: head.method,
            path: head.uri.path_and_query().unwrap().to_string(),
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
            connection,
        };
        self.0.asked.lock().push(asked.clone());
        let mut response = Response::new(Lines::Whole(None));
        match (self.0.handler)(&asked) {
            TestAnswer::Json(code, value) => {
                *response.status_mut() = StatusCode::from_u16(code).unwrap();
                *response.body_mut() = Lines::Whole(Some(value.to_string().into()));
            }
            TestAnswer::With(code, headers, body) => {
                *response.status_mut() = StatusCode::from_u16(code).unwrap();
                for (name, value) in headers {
                    response.headers_mut().insert(name, value.parse().unwrap());
                }
                *response.body_mut() = Lines::Whole(Some(body.into()));
            }
            TestAnswer::Lines(lines) => *response.body_mut() = Lines::Open(lines),
            TestAnswer::Hang => std::future::pending::<()>().await,
            TestAnswer::Close => {
                close.notify_one();
                std::future::pending::<()>().await;
            }
        }
        response
    }
}

pub(crate) enum Lines {
    Whole(Option<Bytes>),
    Open(mpsc::UnboundedReceiver<String>),
}

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Open(lines) => lines
                .poll_recv(context)
                .map(|line| line.map(|line| Ok(Frame::data(line.into())))),
        }
    }
}
