//! Audit events of the kubelet API (port 10250).

use rubelet_server::testing::Journal;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::server::{Credentials, Server, Setup, rest};

async fn server(journal: &Journal) -> Server {
    Server::with(Setup {
        audit: Some(journal.log.clone()),
        ..Setup::default()
    })
    .await
}

/// The fields that tell events apart.
fn brief(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    format!(
        "{} {} {} {} {}",
        text(&event["verb"]),
        text(&event["user"]["username"]),
        text(&event["objectRef"]["subresource"]),
        event["responseStatus"]["code"],
        text(&event["annotations"]["authorization.k8s.io/decision"]),
    )
}

#[tokio::test]
async fn allowed_denied_and_unauthenticated_requests_are_in_the_log() {
    let journal = Journal::new();
    let server = server(&journal).await;
    let ann = server.authority.client("ann", &["dev"]);
    for (credentials, path) in [
        (Credentials::Certificate(ann), "/pods"),
        (Credentials::Token("tok-ann"), "/healthz"),
        (
            Credentials::Token("tok-bob"),
            "/containerLogs/default/web/a",
        ),
        (Credentials::Token("tok-lost"), "/metrics"),
        (Credentials::Token("guessed"), "/pods"),
        (Credentials::None, "/configz"),
        (Credentials::None, "/nowhere"),
    ] {
        server.ask(&credentials, "GET", path).await;
    }
    let address = server.address;
    server.stop().await;
    let (text, events) = journal.close().await;
    let told: Vec<String> = events.iter().map(brief).collect();
    assert_eq!(
        told,
        [
            "get ann pods 200 allow",
            "get ann healthz 200 allow",
            "get bob proxy 403 forbid",
            "get lost metrics 500 forbid",
            "get - pods 401 -",
            "get - configz 401 -",
            "get - - 404 -",
        ]
    );
    let first = &events[0];
    assert_eq!(first["user"]["groups"][0], "dev");
    let id = first["user"]["extra"]["authentication.kubernetes.io/credential-id"][0].as_str();
    assert!(id.unwrap().starts_with("X509SHA256="));
    assert_eq!(first["sourceIPs"][0], address.ip().to_string());
    assert_eq!(first["objectRef"]["resource"], "nodes");
    assert_eq!(first["objectRef"]["name"], "n1");
    assert_eq!(events[4]["user"], serde_json::json!({}));
    assert!(
        !text.contains("tok-") && !text.contains("guessed"),
        "{text}"
    );
}

#[tokio::test]
async fn identifiers_are_taken_from_those_who_were_let_in_only() {
    let journal = Journal::new();
    let server = server(&journal).await;
    for (token, taken) in [("tok-ann", true), ("tok-bob", false), ("guessed", false)] {
        let mut stream = server.connect(None).await;
        let request = format!(
            "GET /pods HTTP/1.1\r\nHost: node\r\nConnection: close\r\nAuthorization: Bearer \
             {token}\r\nAudit-ID: chosen\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await.to_ascii_lowercase();
        assert_eq!(answer.contains("audit-id: chosen\r\n"), taken, "{token}");
        assert!(answer.contains("audit-id: "));
    }
    server.stop().await;
    let (text, events) = journal.close().await;
    let chosen = |event: &&Value| event["auditID"] == "chosen";
    assert_eq!(events.iter().filter(chosen).count(), 1);
    assert!(!text.contains("192.0.2.1"));
}

#[tokio::test]
async fn an_invalid_request_is_in_the_log() {
    let journal = Journal::new();
    let server = server(&journal).await;
    for text in [
        "hello\r\n\r\n",
        "GET /pods HTTP/1.1\r\n\r\n",
        "GET /pods HTTP/1.1\r\nHost: a\r\nX: \u{1}\r\n\r\n",
    ] {
        let mut stream = server.connect(None).await;
        stream.write_all(text.as_bytes()).await.unwrap();
        assert!(
            rest(&mut stream).await.starts_with("HTTP/1.1 400"),
            "{text}"
        );
    }
    // What never becomes TLS is no request; it is counted only.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    server.stop().await;
    let (_, events) = journal.close().await;
    let told: Vec<String> = events.iter().map(brief).collect();
    assert_eq!(told, ["- - - 400 -", "get - pods 400 -", "- - - 400 -"]);
    assert_eq!(events[0]["sourceIPs"][0], "127.0.0.1");
    assert_eq!(events[0]["responseStatus"]["reason"], "BadRequest");
}

#[tokio::test]
async fn a_followed_log_is_reported_at_its_beginning_and_at_its_end() {
    let journal = Journal::new();
    let server = server(&journal).await;
    *server.node.log.lock() = Some(Box::new(|_| Ok(Box::pin(futures_util::stream::pending()))));
    let mut stream = server.connect(None).await;
    let request = "GET /containerLogs/default/web/a?follow=true&tailLines=5 HTTP/1.1\r\nHost: \
                   node\r\nAuthorization: Bearer tok-ann\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    journal.wait_for("ResponseStarted").await;
    drop(stream);
    journal.wait_for("ResponseComplete").await;
    server.stop().await;
    let (_, events) = journal.close().await;
    assert_eq!(events.len(), 2);
    assert_eq!(
        events[1]["requestURI"],
        "/containerLogs/default/web/a?follow=true&tailLines=5"
    );
    assert_eq!(events[0]["auditID"], events[1]["auditID"]);
}

#[tokio::test]
async fn both_protocols_are_recorded_alike() {
    let journal = Journal::new();
    let server = server(&journal).await;
    super::http2::get(&server, "tok-ann", "/pods").await;
    super::http2::get(&server, "tok-bob", "/pods").await;
    server.stop().await;
    let (_, events) = journal.close().await;
    let told: Vec<String> = events.iter().map(brief).collect();
    assert_eq!(told, ["get ann pods 200 allow", "get bob pods 403 forbid"]);
}
