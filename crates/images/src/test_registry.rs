//! A registry on loopback for the tests of this crate: it does what a test asks for, be it wrong.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::{
    body::{Body, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::{Notify, oneshot},
};
use tokio_rustls::TlsAcceptor;

use crate::test_image::Blobs;

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl RecordedRequest {
    pub(crate) fn authorization(&self) -> Option<&str> {
        self.headers
            .get(header::AUTHORIZATION)
            .map(|value| value.to_str().unwrap())
    }
}

/// What to answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) fault: ResponseFault,
}

/// What is wrong with an answer.
#[derive(Clone)]
pub(crate) enum ResponseFault {
    None,
    /// The connection ends after so many bytes.
    CutAfter(usize),
    /// Nothing more comes after so many bytes, until it is allowed.
    StopAfter(usize, Arc<Notify>),
    /// No length is given.
    Chunked,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            fault: ResponseFault::None,
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn fault(mut self, fault: ResponseFault) -> Self {
        self.fault = fault;
        self
    }
}

type Handler = dyn Fn(&RecordedRequest) -> Reply + Send + Sync;

/// A server on loopback; gone when it is dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<RecordedRequest>>>,
    _stop: oneshot::Sender<()>,
    /// Its certificate, for loopback and `registry.test`, if it has one.
    pub(crate) certificate: Option<String>,
}

impl TestServer {
    pub(crate) async fn start(
        handler: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(false, handler).await
    }

    pub(crate) async fn start_with(
        tls: bool,
        handler: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start_on(tls.then(|| acceptor(None)), handler).await
    }

    /// One that wants a certificate of its clients. Yields that, and its key.
    pub(crate) async fn start_mutual(
        handler: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static,
    ) -> (Self, (String, String)) {
        let made = rcgen::generate_simple_self_signed(["client.test".to_owned()]).unwrap();
        let client = (pem(made.cert.der()), key_pem(&made.signing_key));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let server = Self::start_on(Some(acceptor(Some(roots))), handler).await;
        (server, client)
    }

    async fn start_on(
        tls: Option<(TlsAcceptor, String)>,
        handler: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let handler: Arc<Handler> = Arc::new(handler);
        let (stop, mut stopped) = oneshot::channel::<()>();
        let (acceptor, certificate) = tls.unzip();
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let stream = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap().0,
                    _ = &mut stopped => return,
                };
                let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    match acceptor {
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(TokioIo::new(stream), handler, log).await;
                            }
                        }
                        None => serve(TokioIo::new(stream), handler, log).await,
                    }
                });
            }
        });
        Self {
            address,
            asked,
            _stop: stop,
            certificate,
        }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        self.asked.lock().clone()
    }

    pub(crate) fn count(&self, part: &str) -> usize {
        self.asked()
            .iter()
            .filter(|asked| asked.path.contains(part))
            .count()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn acceptor(clients: Option<rustls::RootCertStore>) -> (TlsAcceptor, String) {
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned(), "registry.test".to_owned()])
            .unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(roots) => {
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                provider,
            );
            config.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let config = config
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), pem(made.cert.der()))
}

fn pem(der: &[u8]) -> String {
    armored("CERTIFICATE", der)
}

/// A key as a file has it.
pub(crate) fn key_pem(key: &rcgen::KeyPair) -> String {
    armored("PRIVATE KEY", &key.serialize_der())
}

fn armored(what: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {what}-----\n{text}\n-----END {what}-----\n")
}

/// A proxy that leads to `server`, whatever it is asked for. Yields what it was asked for.
pub(crate) async fn proxy(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(from.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                log.lock().push(head.lines().next().unwrap().to_owned());
                from.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let mut to = tokio::net::TcpStream::connect(server).await.unwrap();
                tokio::io::copy_bidirectional(&mut from, &mut to).await.ok();
            });
        }
    });
    (address, asked)
}

async fn serve<S>(stream: TokioIo<S>, handler: Arc<Handler>, log: Arc<Mutex<Vec<RecordedRequest>>>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let asked = RecordedRequest {
                method: head.method,
                path: head.uri.path_and_query().unwrap().to_string(),
                headers: head.headers,
                body: String::from_utf8(body.to_vec()).unwrap(),
            };
            log.lock().push(asked.clone());
            Ok::<_, Infallible>(response(handler(&asked)))
        }
    });
    http1::Builder::new()
        .serve_connection(stream, service)
        .await
        .ok();
}

fn response(reply: Reply) -> Response<Sent> {
    let mut response = Response::builder().status(StatusCode::from_u16(reply.status).unwrap());
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    let length = reply.body.len();
    if !matches!(reply.fault, ResponseFault::Chunked)
        && !reply.headers.iter().any(|(n, _)| n == "content-length")
    {
        response = response.header(header::CONTENT_LENGTH, length);
    }
    let mut parts = vec![];
    let (first, stop) = match &reply.fault {
        ResponseFault::CutAfter(at) | ResponseFault::StopAfter(at, _) => (*at, true),
        ResponseFault::None | ResponseFault::Chunked => (length, false),
    };
    parts.push(Bytes::from(reply.body[..first].to_vec()));
    if stop {
        parts.push(Bytes::from(reply.body[first..].to_vec()));
    }
    let cut = matches!(reply.fault, ResponseFault::CutAfter(_));
    let wait = match reply.fault {
        ResponseFault::StopAfter(_, notify) => {
            Some(Box::pin(async move { notify.notified().await })
                as Pin<Box<dyn Future<Output = ()> + Send>>)
        }
        _ => None,
    };
    response
        .body(Sent {
            parts: parts.into_iter(),
            sent: 0,
            wait,
            cut,
        })
        .unwrap()
}

pub(crate) struct Sent {
    parts: std::vec::IntoIter<Bytes>,
    sent: usize,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    cut: bool,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.sent == 1 {
            if self.cut {
                return Poll::Ready(Some(Err("cut")));
            }
            if let Some(wait) = &mut self.wait {
                if wait.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.wait = None;
            }
        }
        self.sent += 1;
        Poll::Ready(self.parts.next().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// What a registry has: blobs, and names of manifests.
#[derive(Clone, Default)]
pub(crate) struct Content {
    pub(crate) blobs: Blobs,
    /// Tags with the digests and media types of their manifests.
    pub(crate) tags: BTreeMap<String, String>,
}

impl Content {
    /// The usual answers, for the repository `team/app`.
    pub(crate) fn answer(&self, asked: &RecordedRequest) -> Reply {
        let Some(path) = asked.path.strip_prefix("/v2/") else {
            return Reply::new(404, "no registry here");
        };
        if path.is_empty() {
            return Reply::new(200, "{}");
        }
        let missing = r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
        if let Some(name) = path.strip_prefix("team/app/manifests/") {
            let digest = self.tags.get(name).map_or(name, String::as_str);
            let Some(bytes) = self.blobs.0.get(digest) else {
                return Reply::new(404, missing);
            };
            let json: serde_json::Value = serde_json::from_slice(bytes).unwrap();
            let media_type = json["mediaType"].as_str().unwrap().to_owned();
            return Reply::new(200, bytes.clone())
                .with("content-type", &media_type)
                .with("docker-content-digest", digest);
        }
        if let Some(digest) = path.strip_prefix("team/app/blobs/")
            && let Some(bytes) = self.blobs.0.get(digest)
        {
            return Reply::new(200, bytes.clone());
        }
        Reply::new(404, r#"{"errors":[{"code":"BLOB_UNKNOWN"}]}"#)
    }
}
