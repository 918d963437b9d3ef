//! The audit log of the node's port: each kind of credentials, with users that only the model knows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rubelet_testbed::command::output_of;
use rubelet_testbed::wait;
use serde_json::{Value, json};
use sim_api::{AccessRule, User};

use super::applies;
use crate::joined::{Joined, WAITS, pod};
use crate::outside::TIMEOUT;

/// Secrets in the pod, in requests, and in credentials: none may be in the log.
const SECRETS: [&str; 5] = [
    "s3cret-of-the-pod",
    "s3cret-of-the-query",
    "s3cret-token",
    "s3cret-guess",
    "s3cret-password",
];

/// Response of the node itself; `None` if it refuses.
fn ask(joined: &Joined, name: &str, user: &Value, path: &str) -> Option<String> {
    let node = joined
        .cluster
        .api()
        .get("nodes", "", "worker")
        .unwrap()
        .unwrap();
    let port = &node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"];
    let cluster = json!({
        "server": format!("https://{}:{port}", joined.cluster.node_ip()),
        "certificate-authority": joined.cluster.path("ca.crt"),
    });
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": cluster }],
        "users": [{ "name": "u", "user": user }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
    });
    let file = joined.cluster.path(&format!("{name}.direct"));
    std::fs::write(&file, config.to_string()).unwrap();
    let mut command = joined.kubectl.command();
    command.env("KUBECONFIG", file).args(["get", "--raw", path]);
    let output = output_of(&mut command).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

/// The audit event of the response to the request with this path and this mark in its query.
fn event(log: &Path, path: &str, mark: &str) -> Value {
    let is_it = |event: &Value| {
        let uri = event["requestURI"].as_str().unwrap_or_default();
        let (asked, query) = uri.split_once('?').unwrap_or((uri, ""));
        asked == path && query.contains(mark) && event["stage"] == "ResponseComplete"
    };
    let found = wait::until(&format!("an event of {path} with {mark}"), TIMEOUT, || {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut events = whole.lines().map(|line| {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        });
        Ok(events.find(is_it))
    });
    found.unwrap()
}

#[test]
fn requests_to_the_port_are_audited_without_secrets() {
    if !applies() {
        return;
    }
    let mut log = PathBuf::new();
    let joined = Joined::start_on_model_with("worker", |builder| {
        log = builder.scratch().dir().join("audit.log");
        builder.own_option("audit", json!({ "path": log }))
    });
    let mut web = pod("web", WAITS);
    web["spec"]["containers"][0]["env"] = json!([{ "name": "KEY", "value": SECRETS[0] }]);
    joined.create(&web);
    joined.wait_ready("web");
    let api = joined.cluster.api().model().unwrap();
    api.add_token(SECRETS[2], User::new("reader", &["readers"]));
    api.add_access_rule(AccessRule::allow("reader", "get", "nodes/pods"));
    api.add_access_rule(AccessRule::allow("auditor", "get", "nodes/pods"));
    let auditor = User::new("auditor", &["auditors"]);
    let identity = api
        .client_certificate(&auditor, Duration::from_secs(3600))
        .unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(joined.cluster.path(name), text).unwrap();
        joined.cluster.path(name)
    };
    let certificate = json!({
        "client-certificate": file("auditor.crt", &identity.certificate_pem),
        "client-key": file("auditor.key", &identity.key_pem),
    });
    let password = json!({ "username": "somebody", "password": SECRETS[4] });

    // Each has a unique query, by which its event is found.
    for (name, user, path, code, allowed) in [
        ("auditor", certificate.clone(), "/pods", 200, Some(true)),
        ("auditor", certificate, "/metrics", 403, Some(false)),
        (
            "reader",
            json!({ "token": SECRETS[2] }),
            "/pods",
            200,
            Some(true),
        ),
        (
            "reader",
            json!({ "token": SECRETS[2] }),
            "/configz",
            403,
            Some(false),
        ),
        ("", json!({ "token": SECRETS[3] }), "/pods", 401, None),
        ("", password, "/pods", 401, None),
    ] {
        let number = format!("{name}{code}{}", user["token"].is_string());
        let asked = format!("{path}?labelSelector={number}&key={}", SECRETS[1]);
        let answer = ask(&joined, &number, &user, &asked);
        let is_shown = answer.is_some_and(|text| text.contains(SECRETS[0]));
        assert_eq!(is_shown, code == 200, "{asked}");
        let event = event(&log, path, &format!("labelSelector={number}"));
        let uri = event["requestURI"].as_str().unwrap();
        assert!(uri.contains("REDACTED"), "{event}");
        assert_eq!(event["apiVersion"], "audit.k8s.io/v1", "{event}");
        assert_eq!(event["level"], "Metadata", "{event}");
        assert_eq!(event["verb"], "get", "{event}");
        assert_eq!(event["responseStatus"]["code"], code, "{event}");
        let username = event["user"]["username"].as_str().unwrap_or_default();
        assert_eq!(username, name, "{event}");
        if !name.is_empty() {
            let groups = event["user"]["groups"].as_array().unwrap();
            assert!(groups.contains(&format!("{name}s").into()), "{event}");
            assert_eq!(event["objectRef"]["resource"], "nodes", "{event}");
            assert_eq!(event["objectRef"]["name"], "worker", "{event}");
        }
        assert_eq!(
            event["sourceIPs"],
            json!([joined.cluster.node_ip()]),
            "{event}"
        );
        let agent = event["userAgent"].as_str().unwrap_or_default();
        assert!(agent.starts_with("kubectl"), "{event}");
        let decision = &event["annotations"]["authorization.k8s.io/decision"];
        match allowed {
            Some(true) => assert_eq!(decision, "allow", "{event}"),
            Some(false) => assert_eq!(decision, "forbid", "{event}"),
            None => assert!(decision.is_null(), "{event}"),
        }
    }

    // The API server itself, for kubectl logs.
    assert_eq!(joined.kubectl.stdout(&["logs", "web"]), "begins\n");
    let of_the_api_server = event(&log, "/containerLogs/default/web/main", "");
    assert_eq!(of_the_api_server["responseStatus"]["code"], 200);
    assert_eq!(of_the_api_server["objectRef"]["subresource"], "proxy");

    let text = std::fs::read_to_string(&log).unwrap();
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} is in the audit log");
    }
}
