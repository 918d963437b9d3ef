//! The kubelet's HTTPS port, from outside.

use crate::joined::{Joined, WAITS, pod};

#[test]
fn the_port_lets_in_who_may_and_nobody_else() {
    let joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    joined.wait_ready("web");
    let node = joined.cluster.api().get("nodes", "", "worker").unwrap();
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].clone();
    let url = format!("https://{}:{port}", joined.cluster.node_ip());

    // As the API server, which is a master.
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
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    let authorization = &config["kubeletconfig"]["authorization"];
    assert_eq!(authorization["mode"], "Webhook", "{config}");

    // As somebody else: kubectl can talk to the node itself, too.
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
    api.add_token("of-a-reader", sim_api::User::new("reader", &[]));
    api.add_token("of-nobody", sim_api::User::new("nobody", &[]));
    api.add_access_rule(sim_api::AccessRule::allow("reader", "get", "nodes/pods"));
    let (ok, text) = direct("of-a-reader", "/pods");
    assert!(ok && text.contains("\"name\":\"web\""), "{text}");
    for (token, path) in [("of-a-reader", "/metrics"), ("of-nobody", "/pods")] {
        let (ok, text) = direct(token, path);
        assert!(!ok && text.contains("Forbidden"), "{token} {path}: {text}");
    }
    let (ok, text) = direct("made-up", "/pods");
    assert!(!ok && text.contains("logged in"), "{text}");
}
