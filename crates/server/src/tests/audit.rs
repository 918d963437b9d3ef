//! Audit events of the unix socket.

use rubelet_audit::AuditPolicy;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

use super::fixture::TestServer;
use crate::{
    ActionError,
    testing::{Journal, pod},
};

async fn server(journal: &Journal) -> TestServer {
    let server = TestServer::auditing(Some(journal.log.clone())).await;
    let pods = &server.node.pods;
    pods.put(pod("default", "web", "web", &["a"]));
    server
}

#[tokio::test]
async fn who_asked_for_what_is_in_the_log_and_its_identifier_in_the_answer() {
    let journal = Journal::new();
    let server = server(&journal).await;
    let pid = std::process::id().to_string();
    let path = "/api/v1/namespaces/default/pods/web";
    let reply = server
        .request("GET", path, "User-Agent: tester/1\r\n")
        .await;
    assert_eq!(reply.code, 200);
    let missing = server.get("/api/v1/namespaces/default/pods/none").await;
    assert_eq!(missing.code, 404);
    server.get("/healthz?token=hush").await;
    server.stop().await;
    let (_, events) = journal.close().await;
    assert_eq!(events.len(), 3);
    let event = &events[0];
    assert_eq!(event["stage"], "ResponseComplete");
    assert_eq!(event["requestURI"], path);
    assert_eq!(event["verb"], "get");
    assert_eq!(event["userAgent"], "tester/1");
    let uid = event["user"]["uid"].as_str().unwrap();
    assert_eq!(event["user"]["username"], format!("unix:uid:{uid}"));
    let group = event["user"]["groups"][0].as_str().unwrap();
    assert!(group.starts_with("unix:gid:"));
    assert_eq!(event["user"]["extra"]["node.rubelet.dev/pid"][0], *pid);
    assert_eq!(
        event["objectRef"],
        serde_json::json!({
            "resource": "pods", "namespace": "default", "name": "web", "apiVersion": "v1",
        })
    );
    assert_eq!(event["responseStatus"]["code"], 200);
    let annotations = &event["annotations"];
    assert_eq!(annotations["authorization.k8s.io/decision"], "allow");
    let id = event["auditID"].as_str().unwrap();
    assert_eq!(id.len(), 36);
    assert!(reply.headers.contains(&format!("audit-id: {id}\r\n")));
    let received = event["requestReceivedTimestamp"].as_str().unwrap();
    assert!(received.len() == 27 && received <= event["stageTimestamp"].as_str().unwrap());
    assert!(event.get("sourceIPs").is_none());
    assert_eq!(events[1]["responseStatus"]["code"], 404);
    assert_eq!(events[1]["responseStatus"]["reason"], "NotFound");
    assert_eq!(events[2]["requestURI"], "/healthz?REDACTED");
    assert!(events[2].get("objectRef").is_none());
}

#[tokio::test]
async fn without_a_log_answers_have_no_identifier() {
    let server = TestServer::with_pods().await;
    assert!(!server.get("/version").await.headers.contains("audit-id"));
}

#[tokio::test]
async fn root_may_choose_the_identifier_if_it_is_plain() {
    let journal = Journal::new();
    let server = server(&journal).await;
    let long = "x".repeat(65);
    for (id, taken) in [("chosen-1", true), ("two words", false), (&*long, false)] {
        let header = format!("Audit-ID: {id}\r\n");
        let reply = server.request("GET", "/version", &header).await;
        let named = reply.headers.contains(&format!("audit-id: {id}\r\n"));
        assert_eq!(named, taken, "{id}");
    }
    server.stop().await;
    let (_, events) = journal.close().await;
    assert_eq!(events[0]["auditID"], "chosen-1");
}

#[tokio::test]
async fn what_goes_on_for_long_is_reported_at_its_beginning_and_at_its_end() {
    let journal = Journal::new();
    let server = server(&journal).await;
    let mut watch = server.open("GET", "/api/v1/pods?watch=1", "").await;
    assert_eq!(watch.change().await, "ADDED web");
    journal.wait_for("ResponseStarted").await;
    drop(watch);
    journal.wait_for("ResponseComplete").await;
    *server.node.log.lock() = Some(Box::new(|_| Ok(Box::pin(futures_util::stream::pending()))));
    let path = "/api/v1/namespaces/default/pods/web/log?follow=true";
    let log = server.open("GET", path, "").await;
    server.stop().await;
    drop(log);
    let (_, events) = journal.close().await;
    let told: Vec<String> = events
        .iter()
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap().to_owned();
            format!("{} {}", text("verb"), text("stage"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "watch ResponseStarted",
            "watch ResponseComplete",
            "get ResponseStarted",
            "get ResponseComplete",
        ]
    );
    assert_eq!(events[0]["auditID"], events[1]["auditID"]);
    assert_eq!(events[3]["objectRef"]["subresource"], "log");
}

#[tokio::test]
async fn bodies_and_headers_are_never_in_the_log() {
    let journal = Journal::new();
    let server = server(&journal).await;
    let path = "/api/v1/namespaces/default/pods/web/status";
    let body = r#"{"status":{"conditions":[{"type":"example.com/hush","status":"True"}]}}"#;
    server
        .send("PATCH", path, "application/merge-patch+json", body)
        .await;
    let headers = "Authorization: Bearer hush\r\nCookie: hush\r\nX-Other: hush\r\n";
    server.request("GET", "/version", headers).await;
    *server.node.refusal.lock() = Some(ActionError::Conflict("hush".to_owned()));
    server
        .request("DELETE", "/api/v1/namespaces/default/pods/web", "")
        .await;
    server.stop().await;
    let (text, events) = journal.close().await;
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["verb"], "patch");
    assert_eq!(events[0]["objectRef"]["subresource"], "status");
    assert_eq!(events[2]["responseStatus"]["code"], 409);
    assert!(!text.contains("hush"), "{text}");
}

#[tokio::test]
async fn a_hostile_client_writes_no_lines_of_its_own() {
    let journal = Journal::new();
    let server = server(&journal).await;
    let path = format!(
        "/api/v1/namespaces/%0a%7b%22kind%22/pods/{}",
        "n".repeat(4000)
    );
    let agent = format!(
        "User-Agent: \u{1b}[31m\u{e9}\u{202e}\"}}{}\r\n",
        "u".repeat(4000)
    );
    // A control character is no part of a header, and the request is malformed.
    let mut stream = UnixStream::connect(&server.path).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: node\r\n{agent}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    let agent = agent.replace('\u{1b}', "");
    assert_eq!(server.request("GET", &path, &agent).await.code, 404);
    server.stop().await;
    let (text, events) = journal.close().await;
    assert_eq!((events.len(), text.lines().count()), (2, 2));
    assert_eq!(events[0]["responseStatus"]["code"], 400);
    assert!(
        events[1]["userAgent"]
            .as_str()
            .unwrap()
            .ends_with("...TRUNCATED")
    );
    assert!(
        events[1]["requestURI"]
            .as_str()
            .unwrap()
            .ends_with("...TRUNCATED")
    );
    let name = events[1]["objectRef"]["name"].as_str().unwrap();
    assert!(name.len() < 300);
    assert_eq!(events[1]["objectRef"]["namespace"], "\n{\"kind\"");
    assert!(text.len() < 20_000, "{}", text.len());
}

#[tokio::test]
async fn a_client_that_goes_before_its_answer_is_in_the_log() {
    let journal = Journal::new();
    let server = server(&journal).await;
    let path = "/api/v1/namespaces/default/pods/web/status";
    let mut stream = UnixStream::connect(&server.path).await.unwrap();
    let request = format!(
        "PATCH {path} HTTP/1.1\r\nHost: node\r\nContent-Type: application/merge-patch+json\r\nContent-Length: 100\r\n\r\n{{"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    drop(stream);
    journal.wait_for("\"verb\":\"patch\"").await;
    let (_, events) = journal.close().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["responseStatus"]["status"], "Failure");
}

#[tokio::test]
async fn a_policy_chooses_what_is_recorded() {
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [ResponseStarted]\nrules:\n\
                  - {level: None, nonResourceURLs: ['/healthz*', /version]}\n\
                  - {level: None, verbs: [get], resources: [{resources: [pods/log]}]}\n\
                  - {level: Metadata}\n";
    let journal = Journal::with(AuditPolicy::read("p", policy).unwrap());
    let server = server(&journal).await;
    for path in [
        "/healthz",
        "/version",
        "/api/v1/namespaces/default/pods/web/log",
        "/api/v1/pods?watch=1&timeoutSeconds=1",
        "/configz",
    ] {
        server.get(path).await;
    }
    server.stop().await;
    let (_, events) = journal.close().await;
    let told: Vec<_> = events
        .iter()
        .map(|event| event["requestURI"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["/api/v1/pods?watch=1&timeoutSeconds=1", "/configz"]);
}
