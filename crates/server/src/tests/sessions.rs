//! Sessions on the socket: the API server's paths, queries and words.

use std::time::Duration;

use rubelet_streaming::StdStreams;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::fixture::TestServer;
use crate::{
    Object, SessionAction, SessionError,
    testing::{Journal, WebSocket, pod},
};

const V5: &str = "v5.channel.k8s.io";
const POD: &str = "/api/v1/namespaces/default/pods/web";

async fn open(server: &TestServer, line: &str) -> WebSocket<UnixStream> {
    let stream = UnixStream::connect(&server.path).await.unwrap();
    WebSocket::open(stream, line, V5, "").await
}

fn annotated(container: &str) -> Object {
    let json = json!({
        "metadata": {
            "namespace": "default", "name": "two", "uid": "u2",
            "annotations": { "kubectl.kubernetes.io/default-container": container },
        },
        "spec": { "containers": [{ "name": "a" }, { "name": "b" }] },
    });
    Object::new("default", "two", move || json.clone())
}

#[tokio::test]
async fn a_session_runs_a_command_in_the_only_container() {
    let server = TestServer::with_pods().await;
    for method in ["GET", "POST"] {
        let line =
            format!("{method} {POD}/exec?command=sh&command=-c&command=cat+x&stdin=true&stdout=1");
        let mut session = open(&server, &line).await;
        assert_eq!(session.code, 101, "{}", session.head);
        session.echo("hello").await;
        session.echo("again").await;
        let asked = server.node.sessions.asked.lock().pop().unwrap();
        assert_eq!(asked.uid, None);
        assert_eq!(
            asked.action,
            SessionAction::Exec {
                container: "a".to_owned(),
                command: ["sh", "-c", "cat x"].map(str::to_owned).to_vec(),
                streams: StdStreams {
                    stdin: true,
                    stdout: true,
                    ..StdStreams::default()
                },
            }
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn the_container_is_chosen_as_the_api_server_and_kubectl_choose_it() {
    let server = TestServer::with_pods().await;
    let pods = &server.node.pods;
    let path = "/api/v1/namespaces/default/pods";
    let message = |body: &str| {
        let status: Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            (&status["kind"], &status["reason"]),
            (&json!("Status"), &json!("BadRequest"))
        );
        status["message"].as_str().unwrap().to_owned()
    };
    let refused = open(&server, &format!("POST {path}/db/attach?stdout=true")).await;
    assert_eq!(refused.code, 400);
    assert_eq!(
        message(&refused.body().await),
        "a container name must be specified for pod db, choose one of: [a b]"
    );
    let line = format!("POST {path}/db/exec?command=ls&stdout=1&container=c");
    let refused = open(&server, &line).await;
    assert_eq!(refused.code, 400);
    assert_eq!(
        message(&refused.body().await),
        "container c is not valid for pod db"
    );
    for (annotation, query, chosen) in [("b", "", "b"), ("b", "&container=a", "a"), ("c", "", "")] {
        pods.put(annotated(annotation));
        let line = format!("POST {path}/two/attach?stdout=true{query}");
        let session = open(&server, &line).await;
        if chosen.is_empty() {
            assert_eq!(session.code, 400);
            continue;
        }
        assert_eq!(session.code, 101);
        let asked = server.node.sessions.asked.lock().pop().unwrap();
        let SessionAction::Attach { container, .. } = asked.action else {
            panic!("{asked:?}");
        };
        assert_eq!(container, chosen);
    }
}

#[tokio::test]
async fn refusals_are_statuses() {
    let server = TestServer::with_pods().await;
    let streams = "stdout=true";
    for (refusal, code, reason, message) in [
        (
            SessionError::NoPod,
            404,
            "NotFound",
            "pods \"web\" not found",
        ),
        (
            SessionError::NotRunning,
            400,
            "BadRequest",
            "container \"a\" in pod \"web\" is not running",
        ),
        (
            SessionError::NoSandbox,
            400,
            "BadRequest",
            "pod \"web\" is not running",
        ),
        (
            SessionError::RuntimeNotFound("no container".to_owned()),
            404,
            "NotFound",
            "no container",
        ),
        (
            SessionError::RuntimeExhausted("too many".to_owned()),
            429,
            "TooManyRequests",
            "too many",
        ),
        (
            SessionError::Runtime("broken".to_owned()),
            500,
            "InternalError",
            "broken",
        ),
    ] {
        *server.node.sessions.refusal.lock() = Some(refusal);
        let refused = open(&server, &format!("POST {POD}/exec?command=ls&{streams}")).await;
        assert_eq!(refused.code, code);
        let wait = refused
            .head
            .to_ascii_lowercase()
            .contains("retry-after: 60");
        assert_eq!(wait, code == 429);
        let status: Value = serde_json::from_str(&refused.body().await).unwrap();
        assert_eq!(status["kind"], "Status");
        assert_eq!(
            (&status["reason"], &status["message"]),
            (&json!(reason), &json!(message))
        );
        assert_eq!(status["code"], code);
    }
}

#[tokio::test]
async fn requests_that_make_no_sense_say_why() {
    let server = TestServer::with_pods().await;
    for (line, code, part) in [
        (
            "POST {}/exec?command=ls",
            400,
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        (
            "POST {}/exec?command=ls&tty=1&stderr=1",
            400,
            "you must specify at least 1 of",
        ),
        ("POST {}/exec?stdout=1", 400, "you must specify the command"),
        (
            "POST {}/attach?stdout=perhaps",
            400,
            "must be true or false",
        ),
        (
            "POST {}/portforward",
            400,
            "query parameter \"ports\" is required",
        ),
        ("POST {}/portforward?ports=0", 400, "port \"0\" must be > 0"),
        ("PUT {}/exec?command=ls&stdout=1", 405, "allowed: GET, POST"),
        (
            "POST {}/execute",
            404,
            "could not find the requested resource",
        ),
        (
            "POST {}x/portforward?ports=80",
            404,
            "pods \"webx\" not found",
        ),
    ] {
        let refused = open(&server, &line.replace("{}", POD)).await;
        assert_eq!(refused.code, code, "{line}");
        let body = refused.body().await;
        let status: Value = serde_json::from_str(&body).unwrap();
        assert!(
            status["message"].as_str().unwrap().contains(part),
            "{line}: {body}"
        );
    }
    assert!(server.node.sessions.asked.lock().is_empty());
}

#[tokio::test]
async fn a_request_without_an_upgrade_or_with_a_body_is_a_bad_one() {
    let server = TestServer::with_pods().await;
    let path = format!("{POD}/exec?command=ls&stdout=1");
    let reply = server.request("POST", &path, "").await;
    assert!((400..500).contains(&reply.code), "{reply:?}");
    assert_eq!(reply.json()["kind"], "Status");
    let reply = server.send("POST", &path, "", "body").await;
    assert_eq!(reply.code, 400);
    let message = reply.json()["message"].clone();
    assert!(
        message.as_str().unwrap().ends_with("has no body"),
        "{message}"
    );
}

#[tokio::test]
async fn ports_are_named_by_the_request_where_spdy_does_not() {
    let server = TestServer::with_pods().await;
    let line = format!("GET {POD}/portforward?ports=80,443&ports=8080");
    let stream = UnixStream::connect(&server.path).await.unwrap();
    let session = WebSocket::open(stream, &line, "v4.channel.k8s.io", "").await;
    assert_eq!(session.code, 101, "{}", session.head);
    let asked = server.node.sessions.asked.lock().pop().unwrap();
    let ports = vec![80, 443, 8080];
    assert_eq!(asked.action, SessionAction::PortForward { ports });
}

#[tokio::test]
async fn discovery_lists_the_subresources() {
    let server = TestServer::start().await;
    let list = server.get("/api/v1").await.json();
    for (name, kind) in [
        ("pods/attach", "PodAttachOptions"),
        ("pods/exec", "PodExecOptions"),
        ("pods/portforward", "PodPortForwardOptions"),
    ] {
        let resources = list["resources"].as_array().unwrap();
        let found = resources.iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(found["kind"], kind);
        assert_eq!(found["verbs"], json!(["create", "get"]));
    }
}

#[tokio::test]
async fn the_log_has_a_session_from_its_begin_to_its_end_without_the_command() {
    let journal = Journal::new();
    let server = TestServer::auditing(Some(journal.log.clone())).await;
    server.node.pods.put(pod("default", "web", "web", &["a"]));
    let line = format!("POST {POD}/exec?container=a&command=s3cret&stdin=1&stdout=1");
    let mut session = open(&server, &line).await;
    session.echo("hello").await;
    drop(session);
    server.stop().await;
    let (text, events) = journal.close().await;
    assert!(!text.contains("s3cret"), "{text}");
    let stages: Vec<_> = events
        .iter()
        .map(|event| event["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);
    for event in &events {
        assert_eq!(event["verb"], "create");
        assert_eq!(event["objectRef"]["subresource"], "exec");
        assert_eq!(event["responseStatus"]["code"], 101);
        assert_eq!(
            event["requestURI"],
            format!("{POD}/exec?container=a&REDACTED&stdin=1&stdout=1")
        );
    }
    assert_eq!(events[0]["auditID"], events[1]["auditID"]);
}

#[tokio::test]
async fn a_stop_ends_sessions_and_tells_them() {
    let server = TestServer::with_pods().await;
    let line = format!("POST {POD}/exec?command=cat&stdin=1&stdout=1");
    let mut session = open(&server, &line).await;
    session.echo("hello").await;
    let stopped = tokio::time::timeout(Duration::from_secs(60), server.stop());
    let told = async {
        let mut frames = Vec::new();
        while let Some(frame) = session.frame().await {
            frames.push(frame);
        }
        frames
    };
    let (stopped, frames) = tokio::join!(stopped, told);
    stopped.expect("the server waited for a session");
    // On the channel of errors, or with the close.
    let is_told = |(kind, bytes): &(u8, Vec<u8>)| {
        (bytes.first() == Some(&3) && bytes.len() > 1) || (*kind == 8 && bytes.len() > 2)
    };
    assert!(frames.iter().any(is_told), "{frames:?}");
}

#[tokio::test]
async fn there_may_be_a_thousand_sessions_and_not_any_number_of_them() {
    // Both ends of each are in this process.
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let server = TestServer::with_pods().await;
    let line = format!("POST {POD}/exec?command=cat&stdin=1&stdout=1");
    let mut sessions = Vec::new();
    for _ in 0..1024 {
        let session = open(&server, &line).await;
        assert_eq!(session.code, 101, "{}", sessions.len());
        sessions.push(session);
    }
    let refused = open(&server, &line).await;
    assert_eq!(refused.code, 429);
    assert!(refused.body().await.contains("as many sessions"));
    // Everything else is answered.
    assert_eq!(server.get("/api/v1/pods").await.code, 200);
    sessions[0].echo("hello").await;
    sessions[1023].echo("hello").await;
    // The place of one that has ended is free, as soon as that is seen.
    drop(sessions.pop());
    let mut codes = Vec::new();
    for _ in 0..100 {
        let session = open(&server, &line).await;
        codes.push(session.code);
        if session.code == 101 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(codes.last(), Some(&101));
}
