//! httpGet probes with TLS.

use std::sync::Arc;

use rubelet_api::probe::HttpGet;
use rubelet_probes::{ProbeOutcome, ProbeReport};
use rustls::{
    ServerConfig, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
    version::{TLS12, TLS13},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::server::{PLENTY, SHORT, Server, answer, answer_one, prober};

fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["not-the-name.example".to_owned()])
        .expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    (made.cert.der().clone(), key)
}

fn builder(
    version: &'static SupportedProtocolVersion,
) -> rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier> {
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .expect("a known version")
}

pub(crate) fn config(
    version: &'static SupportedProtocolVersion,
    protocols: &[&str],
) -> ServerConfig {
    let (certificate, key) = certificate();
    let mut config = builder(version)
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate that fits its key");
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    config
}

/// A server that answers every request over TLS with its first line.
async fn server(config: ServerConfig) -> Server {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Server::new(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                return serve_http2(stream).await;
            }
            answer_one(stream, |head| {
                answer("200 OK", head.lines().next().unwrap_or_default())
            })
            .await;
        }
    })
    .await
}

pub(crate) async fn serve_http2(stream: tokio_rustls::server::TlsStream<TcpStream>) {
    let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let body = format!(
            "{} {:?}",
            request.uri(),
            request.headers().get("user-agent")
        );
        let mut body_stream = respond
            .send_response(http::Response::new(()), false)
            .expect("an open stream");
        body_stream
            .send_data(body.into(), true)
            .expect("an open stream");
    }
}

fn secure(server: &Server) -> HttpGet {
    HttpGet {
        https: true,
        ..server.get("/x")
    }
}

async fn probe(server: &Server) -> ProbeReport {
    prober().http(&secure(server), "127.0.0.1", PLENTY).await
}

#[tokio::test]
async fn any_certificate_will_do() {
    for version in [&TLS12, &TLS13] {
        let server = server(config(version, &[])).await;
        let report = probe(&server).await;
        assert_eq!(
            (report.verdict, report.output.as_str()),
            (ProbeOutcome::Passed, "GET /x HTTP/1.1")
        );
    }
}

#[tokio::test]
async fn a_server_may_choose_http2() {
    let server = server(config(&TLS13, &["h2"])).await;
    let report = probe(&server).await;
    assert_eq!(report.verdict, ProbeOutcome::Passed);
    let expected = format!(
        "https://127.0.0.1:{}/x Some(\"kube-probe/1.36\")",
        server.port
    );
    assert_eq!(report.output, expected);
}

#[tokio::test]
async fn one_client_serves_many_probes() {
    let server = server(config(&TLS13, &["http/1.1"])).await;
    let prober = prober();
    for _ in 0..3 {
        let report = prober
            .clone()
            .http(&secure(&server), "127.0.0.1", PLENTY)
            .await;
        assert_eq!(report.verdict, ProbeOutcome::Passed);
    }
}

#[tokio::test]
async fn an_end_without_a_farewell_is_an_end() {
    let acceptor = TlsAcceptor::from(Arc::new(config(&TLS13, &[])));
    let server = Server::new(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(stream).await.expect("a handshake");
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nwell").await;
            let _ = stream.flush().await;
            let _ = stream.get_mut().0.shutdown().await;
            std::future::pending::<()>().await;
        }
    })
    .await;
    let report = probe(&server).await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (ProbeOutcome::Passed, "well")
    );
}

#[tokio::test]
async fn servers_without_tls_have_different_errors() {
    for (text, expected) in [
        (
            answer("400 Bad Request", ""),
            "http: server gave HTTP response to HTTPS client",
        ),
        (
            b"220 mail.example ESMTP\r\n".to_vec(),
            "tls: first record does not look like a TLS handshake",
        ),
        (Vec::new(), "EOF"),
        (
            vec![21, 3, 1, 0, 2, 2, 40],
            "remote error: tls: handshake failure",
        ),
    ] {
        let server = Server::new(move |mut stream| {
            let text = text.clone();
            async move {
                use tokio::io::AsyncReadExt;
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(&text).await;
            }
        })
        .await;
        let report = probe(&server).await;
        let expected = format!("Get \"https://127.0.0.1:{}/x\": {expected}", server.port);
        assert_eq!(
            (report.verdict, report.output),
            (ProbeOutcome::Failed, expected)
        );
    }
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_says_so() {
    let (authority, _) = certificate();
    let (own, key) = certificate();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority).expect("a certificate");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .expect("a verifier");
    let config = builder(&TLS13)
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![own], key)
        .expect("a certificate that fits its key");
    let server = server(config).await;
    let report = probe(&server).await;
    let expected = format!(
        "Get \"https://127.0.0.1:{}/x\": remote error: tls: certificate required",
        server.port
    );
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Failed, expected)
    );
}

#[tokio::test]
async fn a_handshake_that_hangs_is_a_timeout() {
    let server = Server::new(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let report = prober().http(&secure(&server), "127.0.0.1", SHORT).await;
    let expected = format!(
        "Get \"https://127.0.0.1:{}/x\": \
         context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        server.port
    );
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::TimedOut, expected)
    );
}

#[tokio::test]
async fn a_redirect_may_change_the_scheme() {
    let target = server(config(&TLS13, &[])).await;
    let location = format!("https://127.0.0.1:{}/y", target.port);
    let server = Server::saying(format!(
        "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    ))
    .await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (ProbeOutcome::Passed, "GET /y HTTP/1.1")
    );
}
