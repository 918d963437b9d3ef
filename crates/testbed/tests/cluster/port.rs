//! The kubelet's HTTPS port.

use rubelet_testbed::Agent;
use serde_json::{Value, json};

use crate::joined::{Joined, WAITS, pod, wait_stdout};
use crate::outside::TIMEOUT;

#[test]
fn the_port_authenticates_and_authorizes_requests() {
    let joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    joined.wait_ready("web");
    let node = joined
        .cluster
        .api()
        .get("nodes", "", "worker")
        .unwrap()
        .unwrap();
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].clone();
    let url = format!("https://{}:{port}", joined.cluster.node_ip());

    // As the API server, in the group system:masters.
    let proxied = |path: &str| {
        let path = format!("/api/v1/nodes/worker/proxy{path}");
        joined.kubectl.run(&["get", "--raw", &path])
    };
    assert_eq!(proxied("/healthz").stdout, "ok");
    assert!(proxied("/pods").stdout.contains("\"name\":\"web\""));
    let metrics = proxied("/metrics").stdout;
    for name in [
        "kubelet_running_pods",
        "rest_client_requests_total",
        "kubelet_http_requests_total",
    ] {
        assert!(metrics.contains(name), "{name}");
    }
    let config = proxied("/configz").stdout;
    let config: Value = serde_json::from_str(&config).unwrap();
    let authorization = &config["kubeletconfig"]["authorization"];
    assert_eq!(authorization["mode"], "Webhook", "{config}");

    // As another user: kubectl can also connect to the node itself.
    let ca = joined.cluster.path("ca.crt").display().to_string();
    let direct = |token: &str, path: &str| {
        let mut command = joined.kubectl.command();
        command.env("KUBECONFIG", "/dev/null").args([
            "--server",
            &url,
            "--certificate-authority",
            &ca,
            "--token",
            token,
            "get",
            "--raw",
            path,
        ]);
        let output = rubelet_testbed::command::output_of(&mut command).unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let api = joined.cluster.api();
    let reader = api.token_of("reader").unwrap();
    let nobody = api.token_of("nobody").unwrap();
    api.allow("reader", "get", "nodes/pods").unwrap();
    let (ok, text) = direct(&reader, "/pods");
    assert!(ok && text.contains("\"name\":\"web\""), "{text}");
    for (who, token, path) in [
        ("reader", &reader, "/metrics"),
        ("nobody", &nobody, "/pods"),
    ] {
        let (ok, text) = direct(token, path);
        assert!(!ok && text.contains("Forbidden"), "{who} {path}: {text}");
    }
    let (ok, text) = direct("made-up", "/pods");
    assert!(!ok && text.contains("logged in"), "{text}");
}

#[test]
fn the_audit_log_has_users_and_no_secrets() {
    const PASSWORD: &str = "a-password-that-is-nowhere-else";
    let joined = Joined::start_with("worker", |builder| {
        let path = builder.scratch().dir().join("audit.log");
        builder.own_option("audit", json!({ "path": path }))
    });
    let log = joined.runtime.scratch().dir().join("audit.log");
    let secret = json!({
        "metadata": { "name": "login", "namespace": "default" },
        "stringData": { "password": PASSWORD },
    });
    joined.cluster.api().create("secrets", &secret).unwrap();
    let mut web = pod("web", &format!("echo $PASSWORD; {WAITS}"));
    let key = json!({ "secretKeyRef": { "name": "login", "key": "password" } });
    web["spec"]["containers"][0]["env"] = json!([{ "name": "PASSWORD", "valueFrom": key }]);
    joined.create(&web);
    joined.wait_ready("web");
    let logs = wait_stdout(&joined.kubectl, &["logs", "web"], |text| {
        text.contains("begins")
    });
    assert!(logs.starts_with(PASSWORD), "{logs}");
    let path = "/api/v1/nodes/worker/proxy/pods?mine=a-value-of-a-query";
    joined.kubectl.stdout(&["get", "--raw", path]);

    let told = |_: &Agent| {
        let text = std::fs::read_to_string(&log)?;
        Ok(text.contains("REDACTED").then_some(text))
    };
    let told = joined.agent.wait_for("audit events", TIMEOUT, told);
    let text = told.unwrap();
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<Value> = events.collect();
    let of_logs = events.iter().find(|event| {
        let uri = event["requestURI"].as_str();
        uri.is_some_and(|uri| uri.starts_with("/containerLogs/default/web/main"))
    });
    let event = of_logs.expect("the request of kubectl logs");
    assert_eq!(event["responseStatus"]["code"], 200, "{event}");
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "allow"
    );
    assert!(
        !event["user"]["username"].as_str().unwrap().is_empty(),
        "{event}"
    );
    for hidden in [PASSWORD, "a-value-of-a-query"] {
        assert!(!text.contains(hidden), "{text}");
    }
}
