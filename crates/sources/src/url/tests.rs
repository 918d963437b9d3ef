//! Fetching from servers on loopback.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivatePkcs8KeyDer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::{
    fetch::{FetchError, FetchResult},
    *,
};

type Handler = dyn Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync;

/// A server that remembers what it was asked.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

impl Server {
    pub(crate) async fn start(
        handler: impl Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(None, Arc::new(handler)).await
    }

    async fn start_with(tls: Option<TlsAcceptor>, handler: Arc<Handler>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, handler, seen) = (tls.clone(), Arc::clone(&handler), Arc::clone(&seen));
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, handler, seen).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, handler, seen).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Path and headers of each request.
    fn asked(&self) -> Vec<(String, HeaderMap)> {
        self.asked.lock().clone()
    }
}

async fn serve<S>(stream: S, handler: Arc<Handler>, seen: Arc<Mutex<Vec<(String, HeaderMap)>>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |request: Request<Incoming>| {
        seen.lock()
            .push((request.uri().path().to_owned(), request.headers().clone()));
        let response = handler(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let _closed = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

pub(crate) fn answer(status: u16, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn redirect(status: u16, to: &str) -> Response<Full<Bytes>> {
    let mut response = answer(status, "");
    response
        .headers_mut()
        .insert(header::LOCATION, to.parse().unwrap());
    response
}

fn fetcher(url: &str, headers: HeaderMap) -> Fetcher {
    Fetcher::new(Target::parse(url).unwrap(), headers, Roots::System)
}

fn body(text: &str) -> FetchResult {
    FetchResult::Body(text.to_owned().into())
}

fn secret() -> HeaderMap {
    HeaderMap::from_iter([(
        header::AUTHORIZATION,
        HeaderValue::from_static("Bearer secret"),
    )])
}

#[tokio::test]
async fn configured_headers_and_credentials_go_with_the_request() {
    let server = Server::start(|_| answer(200, "pods")).await;
    let mut headers = HeaderMap::new();
    for value in ["one", "two"] {
        headers.append("x-list", HeaderValue::from_static(value));
    }
    let url = server.url("/m?q").replace("http://", "http://joe:pw@");
    assert_eq!(
        fetcher(&url, headers.clone()).fetch().await.unwrap(),
        body("pods")
    );
    headers.insert(header::USER_AGENT, HeaderValue::from_static("mine"));
    headers.extend(secret());
    assert_eq!(fetcher(&url, headers).fetch().await.unwrap(), body("pods"));
    let asked = server.asked();
    let values = |at: usize, name: &str| -> Vec<_> {
        asked[at]
            .1
            .get_all(name)
            .iter()
            .map(|v| v.to_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(values(0, "x-list"), ["one", "two"]);
    assert_eq!(values(0, "authorization"), ["Basic am9lOnB3"]);
    assert!(values(0, "user-agent")[0].starts_with("rubelet/"));
    assert_eq!(values(0, "host"), [server.address.to_string()]);
    assert_eq!(values(1, "authorization"), ["Bearer secret"]);
    assert_eq!(values(1, "user-agent"), ["mine"]);
}

#[tokio::test]
async fn a_tag_of_the_server_is_given_back() {
    let server = Server::start(|request| {
        if request.headers().contains_key(header::IF_NONE_MATCH) {
            return answer(304, "");
        }
        let mut response = answer(200, "pods");
        response
            .headers_mut()
            .insert(header::ETAG, HeaderValue::from_static("\"v1\""));
        response
    })
    .await;
    let mut fetcher = fetcher(&server.url("/"), HeaderMap::new());
    assert_eq!(fetcher.fetch().await.unwrap(), body("pods"));
    assert_eq!(fetcher.fetch().await.unwrap(), FetchResult::NotModified);
    assert_eq!(server.asked()[1].1[header::IF_NONE_MATCH], "\"v1\"");
}

#[tokio::test]
async fn not_modified_is_an_error_where_nothing_was_had_before() {
    let server = Server::start(|_| answer(304, "")).await;
    let error = fetcher(&server.url("/"), HeaderMap::new())
        .fetch()
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        FetchError::Status(StatusCode::NOT_MODIFIED)
    ));
}

#[tokio::test]
async fn redirects_are_followed_and_secrets_kept_from_other_hosts() {
    let other = Server::start(|_| answer(200, "elsewhere")).await;
    let far = format!("http://localhost:{}/far", other.address.port());
    let server = Server::start(move |request| match request.uri().path() {
        "/start" => redirect(302, "near"),
        "/near" => redirect(308, &far),
        _ => answer(404, ""),
    })
    .await;
    let mut fetcher = fetcher(&server.url("/start"), secret());
    assert_eq!(fetcher.fetch().await.unwrap(), body("elsewhere"));
    let asked = server.asked();
    assert_eq!(asked[1].0, "/near");
    assert!(
        asked
            .iter()
            .all(|(_, headers)| headers.contains_key(header::AUTHORIZATION))
    );
    assert!(!other.asked()[0].1.contains_key(header::AUTHORIZATION));
    assert_eq!(other.asked()[0].1[header::REFERER], server.url("/near"));
}

#[tokio::test]
async fn endless_redirects_end() {
    let server = Server::start(|_| redirect(301, "/")).await;
    let error = fetcher(&server.url("/"), HeaderMap::new())
        .fetch()
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::TooManyRedirects), "{error}");
    assert_eq!(server.asked().len(), 10);
}

#[tokio::test]
async fn an_invalid_manifest_is_a_failure() {
    let server = Server::start(|request| match request.uri().path() {
        "/missing" => answer(404, "not found"),
        "/moved-nowhere" => answer(301, ""),
        "/moved-away" => redirect(301, "ftp://host/"),
        "/big" => answer(200, &"x".repeat(10 * 1024 * 1024 + 1)),
        _ => answer(500, ""),
    })
    .await;
    for (path, text) in [
        ("/missing", "the server answered 404 Not Found"),
        (
            "/moved-nowhere",
            "the server answered 301 Moved Permanently",
        ),
        (
            "/moved-away",
            "redirected to an unusable URL: unsupported scheme",
        ),
        ("/big", "the response is larger than 10 MiB"),
        ("/", "the server answered 500 Internal Server Error"),
    ] {
        let error = fetcher(&server.url(path), HeaderMap::new())
            .fetch()
            .await
            .unwrap_err();
        assert!(
            ErrorChain(&error).to_string().starts_with(text),
            "{}",
            ErrorChain(&error)
        );
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_named_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = fetcher(&url, HeaderMap::new()).fetch().await.unwrap_err();
    assert!(
        ErrorChain(&error).to_string().contains("refused"),
        "{}",
        ErrorChain(&error)
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let error = fetcher(&url, HeaderMap::new()).fetch().await.unwrap_err();
    assert!(matches!(error, FetchError::Timeout), "{error}");
}

#[tokio::test]
async fn a_secure_server_is_asked_if_its_authority_is_trusted() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let server = Server::start_with(Some(tls), Arc::new(|_: &_| answer(200, "pods"))).await;
    let url = format!("https://localhost:{}/", server.address.port());
    let ask = |roots| async {
        Fetcher::new(Target::parse(&url).unwrap(), HeaderMap::new(), roots)
            .fetch()
            .await
    };
    let trusted = Roots::Certificates(vec![authority.der().to_vec()]);
    assert_eq!(ask(trusted).await.unwrap(), body("pods"));
    let stranger = Roots::Certificates(vec![certificate.der().to_vec()]);
    let error = ask(stranger).await.unwrap_err();
    assert!(
        ErrorChain(&error).to_string().contains("certificate"),
        "{}",
        ErrorChain(&error)
    );
}

#[test]
fn only_the_first_failures_are_loud() {
    let mut failures = Failures::default();
    let loud: Vec<_> = (0..5).map(|_| failures.count()).collect();
    use FailureLog::{LastWarning, Quiet, Warning};
    assert_eq!(loud, [Warning, Warning, LastWarning, Quiet, Quiet]);
    failures.succeeded("http://host/");
    assert_eq!(failures.count(), Warning);
}
