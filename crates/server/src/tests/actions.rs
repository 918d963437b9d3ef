//! What can be done to a pod: each route, with good and with bad requests.

use rubelet_http_core::field_error::FieldError;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

use super::fixture::{Reply, TestServer};
use crate::ActionError;

const WEB: &str = "/api/v1/namespaces/default/pods/web";
const OWN: &str = "/apis/node.rubelet.dev/v1alpha1/namespaces/default/pods/web";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";

fn done(server: &TestServer) -> Vec<String> {
    std::mem::take(&mut *server.node.done.lock())
}

#[track_caller]
fn is_refused(reply: &Reply, code: u16, reason: &str, message: &str) {
    let status = reply.json();
    assert_eq!(
        (
            reply.code,
            status["kind"].as_str(),
            status["reason"].as_str()
        ),
        (code, Some("Status"), Some(reason)),
        "{status}"
    );
    let text = status["message"].as_str().unwrap();
    assert!(text.contains(message), "{text}");
}

fn gate(status: &str) -> String {
    json!({ "status": { "conditions": [{ "type": "lb/up", "status": status }] } }).to_string()
}

#[tokio::test]
async fn a_restart_is_posted() {
    let server = TestServer::with_pods().await;
    let reply = server.send("POST", &format!("{OWN}/restart"), "", "").await;
    let answer = reply.json();
    assert_eq!((reply.code, &answer["kind"]), (200, &json!("PodRestart")));
    assert_eq!(answer["apiVersion"], "node.rubelet.dev/v1alpha1");
    let path = format!("{OWN}/restart?container=a");
    let reply = server.send("POST", &path, "application/json", "{}\n").await;
    assert_eq!(reply.code, 200);
    assert_eq!(
        done(&server),
        [
            "default/web: restart None",
            "default/web: restart Some(\"a\")"
        ]
    );

    is_refused(
        &server.get(&format!("{OWN}/restart")).await,
        405,
        "MethodNotAllowed",
        "allowed: POST",
    );
    let body = server
        .send("POST", &path, "application/json", r#"{"container":"a"}"#)
        .await;
    is_refused(&body, 400, "BadRequest", "?container=NAME");
    let path = format!("{path}&dryRun=All");
    let dry = server.send("POST", &path, "", "").await;
    is_refused(&dry, 400, "BadRequest", "dry run");
    let other = format!("{OWN}/restart").replace("web", "nothing");
    let missing = server.send("POST", &other, "", "").await;
    is_refused(&missing, 404, "NotFound", r#"pods "nothing" not found"#);
    assert_eq!(done(&server), [""; 0]);
}

#[tokio::test]
async fn the_reasons_of_a_pod_are_a_document() {
    let server = TestServer::with_pods().await;
    let reply = server.get(&format!("{OWN}/why")).await;
    let answer = reply.json();
    assert_eq!(
        (reply.code, &answer["kind"], &answer["phase"]),
        (200, &json!("PodExplanation"), &json!("Running"))
    );
    is_refused(
        &server.request("POST", &format!("{OWN}/why"), "").await,
        405,
        "MethodNotAllowed",
        "allowed: GET",
    );
}

#[tokio::test]
async fn conditions_are_patched_and_the_pod_is_answered() {
    let server = TestServer::with_pods().await;
    let path = format!("{WEB}/status?fieldManager=kubectl-patch");
    for kind in [
        STRATEGIC,
        MERGE,
        "application/merge-patch+json; charset=utf-8",
    ] {
        let reply = server.send("PATCH", &path, kind, &gate("True")).await;
        let pod = reply.json();
        assert_eq!((reply.code, &pod["kind"]), (200, &json!("Pod")), "{kind}");
        assert_eq!(pod["metadata"]["name"], "web");
    }
    let operations = json!([{ "op": "add", "path": "/status/conditions",
                              "value": [{ "type": "lb/up", "status": "True" }] }]);
    let kind = "application/json-patch+json";
    let body = operations.to_string();
    assert_eq!(server.send("PATCH", &path, kind, &body).await.code, 200);
    let mut pod = server.get(&format!("{WEB}/status")).await.json();
    assert_eq!(pod["kind"], "Pod");
    pod["status"]["conditions"] = json!([{ "type": "lb/up", "status": "True" }]);
    let reply = server
        .send("PUT", &path, "application/json", &pod.to_string())
        .await;
    assert_eq!(reply.code, 200, "{}", reply.body);
    assert_eq!(done(&server), ["default/web: set [\"lb/up\"] remove []"; 5]);
}

#[tokio::test]
async fn bad_patches_of_a_status_are_refused() {
    let server = TestServer::with_pods().await;
    let path = format!("{WEB}/status");
    let phase = r#"{"status":{"phase":"Failed"}}"#;
    let reply = server.send("PATCH", &path, STRATEGIC, phase).await;
    is_refused(
        &reply,
        422,
        "Invalid",
        "Pod \"web\" is invalid: status.phase: Forbidden: only status.conditions",
    );
    let details = &reply.json()["details"];
    assert_eq!(
        (&details["kind"], &details["name"]),
        (&json!("Pod"), &json!("web"))
    );
    assert_eq!(details["causes"][0]["reason"], "FieldValueForbidden");
    assert_eq!(details["causes"][0]["field"], "status.phase");

    let yaml = "application/apply-patch+yaml";
    for (kind, body, code, reason, message) in [
        (
            yaml,
            "{}",
            415,
            "UnsupportedMediaType",
            "application/json-patch+json, ",
        ),
        ("", "{}", 415, "UnsupportedMediaType", "merge-patch"),
        (MERGE, "{", 400, "BadRequest", "the body is not JSON"),
        (MERGE, "", 400, "BadRequest", "the body is not JSON"),
        (
            MERGE,
            r#"{"metadata":{"resourceVersion":"1"}}"#,
            409,
            "Conflict",
            "the object has been modified",
        ),
        (
            MERGE,
            &gate("Perhaps"),
            422,
            "Invalid",
            "must be True, False or Unknown",
        ),
    ] {
        let reply = server.send("PATCH", &path, kind, body).await;
        is_refused(&reply, code, reason, message);
    }
    let dry = format!("{path}?dryRun=All");
    let reply = server.send("PATCH", &dry, MERGE, &gate("True")).await;
    is_refused(&reply, 400, "BadRequest", "dry run");
    let missing = path.replace("web", "nothing");
    let reply = server.send("PATCH", &missing, MERGE, &gate("True")).await;
    is_refused(&reply, 404, "NotFound", r#"pods "nothing" not found"#);
    let reply = server.request("DELETE", &path, "").await;
    is_refused(&reply, 405, "MethodNotAllowed", "allowed: GET, PATCH, PUT");
    let put = server.send("PUT", &path, STRATEGIC, "{}").await;
    is_refused(&put, 415, "UnsupportedMediaType", "application/json");
    let long = format!(r#"{{"x":"{}"}}"#, "x".repeat(4 << 20));
    let reply = server.send("PATCH", &path, MERGE, &long).await;
    is_refused(&reply, 413, "RequestEntityTooLarge", "limit is 3145728");
    assert_eq!(done(&server), [""; 0]);
}

#[tokio::test]
async fn ephemeral_containers_are_added() {
    let server = TestServer::with_pods().await;
    let path = format!("{WEB}/ephemeralcontainers");
    let patch = json!({ "spec": { "ephemeralContainers": [{ "name": "d", "image": "x" }] } });
    for kind in [STRATEGIC, MERGE] {
        let reply = server.send("PATCH", &path, kind, &patch.to_string()).await;
        assert_eq!((reply.code, &reply.json()["kind"]), (200, &json!("Pod")));
    }
    let mut pod = server.get(&path).await.json();
    pod["spec"]["ephemeralContainers"] = patch["spec"]["ephemeralContainers"].clone();
    let json = "application/json";
    let reply = server.send("PUT", &path, json, &pod.to_string()).await;
    assert_eq!(reply.code, 200, "{}", reply.body);
    assert_eq!(done(&server), ["default/web: add [String(\"d\")]"; 3]);
    let image = r#"{"spec":{"containers":[{"name":"a","image":"y"}]}}"#;
    let reply = server.send("PATCH", &path, MERGE, image).await;
    is_refused(&reply, 422, "Invalid", "only spec.ephemeralContainers");
    let unnamed = r#"{"spec":{"ephemeralContainers":[{"image":"y"}]}}"#;
    let reply = server.send("PATCH", &path, STRATEGIC, unnamed).await;
    is_refused(&reply, 400, "BadRequest", "has no \"name\"");
    let reply = server.send("PATCH", &path, MERGE, unnamed).await;
    is_refused(&reply, 422, "Invalid", "[0].name: Required value");
}

#[tokio::test]
async fn a_pod_is_deleted_with_the_options_of_kubectl() {
    let server = TestServer::with_pods().await;
    let json = "application/json";
    for (query, body, expected) in [
        ("", Value::Null, "None"),
        ("?gracePeriodSeconds=7", Value::Null, "Some(7)"),
        (
            "?gracePeriodSeconds=7",
            json!({ "gracePeriodSeconds": 3 }),
            "Some(3)",
        ),
        (
            "",
            json!({ "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
                    "propagationPolicy": "Background", "preconditions": { "uid": "uid-web" } }),
            "Some(0)",
        ),
        (
            "",
            json!({ "dryRun": [], "gracePeriodSeconds": null }),
            "None",
        ),
    ] {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let path = format!("{WEB}{query}");
        let reply = server.send("DELETE", &path, json, &body).await;
        assert_eq!(
            (reply.code, &reply.json()["kind"]),
            (200, &json!("Pod")),
            "{query} {body}"
        );
        assert_eq!(done(&server), [format!("default/web: delete {expected}")]);
    }
    for (query, body, code, message) in [
        (
            "?gracePeriodSeconds=-1",
            "",
            400,
            "gracePeriodSeconds: Invalid value",
        ),
        ("?dryRun=All", "", 400, "no dry run"),
        ("", r#"{"dryRun":["All"]}"#, 422, "dryRun: Forbidden"),
        (
            "",
            r#"{"gracePeriodSeconds":-1}"#,
            422,
            "gracePeriodSeconds: Invalid value: -1",
        ),
        ("", r#"{"force":true}"#, 422, "force: Invalid value"),
        ("", r#"{"kind":"Pod"}"#, 422, "kind: Invalid value"),
        ("", "[]", 400, "must be DeleteOptions"),
        ("", "{", 400, "not JSON"),
        (
            "",
            r#"{"preconditions":{"uid":"other"}}"#,
            409,
            "UID in precondition: other, UID in object meta: uid-web",
        ),
    ] {
        let path = format!("{WEB}{query}");
        let reply = server.send("DELETE", &path, json, body).await;
        let text = reply.json()["message"].as_str().unwrap().to_owned();
        assert!(
            reply.code == code && text.contains(message),
            "{query}{body}: {text}"
        );
    }
    assert_eq!(done(&server), [""; 0]);
}

#[tokio::test]
async fn the_nodes_own_refusal_keeps_its_kind() {
    let server = TestServer::with_pods().await;
    let kept = "the pod is kept by manifest /m/web.yaml: remove or move that file";
    for (error, code, reason, message) in [
        (
            ActionError::Conflict(kept.to_owned()),
            409,
            "Conflict",
            kept,
        ),
        (
            ActionError::Invalid(vec![
                FieldError::required("a.b"),
                FieldError::forbidden("c", "no"),
            ]),
            422,
            "Invalid",
            "Pod \"web\" is invalid: [a.b: Required value, c: Forbidden: no]",
        ),
        (
            ActionError::BadRequest("no".to_owned()),
            400,
            "BadRequest",
            "no",
        ),
        (
            ActionError::Internal("disk".to_owned()),
            500,
            "InternalError",
            "disk",
        ),
    ] {
        *server.node.refusal.lock() = Some(error);
        let reply = server.send("DELETE", WEB, "", "").await;
        is_refused(&reply, code, reason, message);
    }
}

#[tokio::test]
async fn long_bodies_are_few_at_a_time_and_short_ones_do_not_wait_for_them() {
    let server = TestServer::with_pods().await;
    let path = "/api/v1/namespaces/default/pods/web/status";
    let begin = async |length: usize| {
        let mut stream = UnixStream::connect(&server.path).await.unwrap();
        let head = format!(
            "PATCH {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\nContent-Type: \
             application/merge-patch+json\r\nContent-Length: {length}\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let mut stalled = Vec::new();
    for _ in 0..5 {
        stalled.push(begin(1 << 20).await);
    }
    // The server has begun to read them: those that it accepted first come first.
    server.get("/version").await;
    let mut next = begin(100_000).await;
    next.write_all(&[b' '; 99_998]).await.unwrap();
    next.write_all(b"}").await.unwrap();
    let mut answer = Vec::new();
    {
        let answered = next.read_to_end(&mut answer);
        let others = async {
            for _ in 0..50 {
                let small = server.send("PATCH", path, "application/merge-patch+json", "{}");
                assert_ne!(small.await.code, 503);
            }
        };
        tokio::select! {
            biased;
            _ = answered => panic!("one more long body was read beside the others"),
            () = others => {}
        }
    }
    stalled.pop();
    next.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 "));
}
