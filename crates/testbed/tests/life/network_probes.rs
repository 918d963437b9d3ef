//! Probes over the network, against servers in containers and on the host.

use std::net::TcpListener;

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{shell, waiting, with};
use rubelet_testbed::status::{condition, container, is_ready, restarts};
use serde_json::{Value, json};

use crate::grpc_server::GrpcServer;
use crate::notes::{Notes, until};
use crate::outside::http_server::HttpServer;
use crate::sockets::Connections;

fn ready_by(container: Value, probe: &Value) -> Value {
    let often = json!({ "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 1 });
    let readiness = with(often, probe);
    with(container, &json!({ "readinessProbe": readiness }))
}

fn not_ready(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "False"
}

#[test]
fn an_http_readiness_probe_changes_readiness_only() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "readiness-http")?;
    let server = "trap 'exit 0' TERM; httpd -f -p 8080 -h /notes & while :; do wait; done";
    let main = with(
        shell("main", server),
        &json!({ "ports": [{ "name": "web", "containerPort": 8080 }] }),
    );
    let probe = json!({ "httpGet": { "port": "web", "path": "/page?a=b" } });
    let spec = json!({ "containers": [ready_by(main, &probe), waiting("other")] });
    node.apply(&notes.pod("readiness-http", spec))?;
    let event = node.wait_event("readiness-http", "Unhealthy", "statuscode")?;
    assert_eq!(
        event,
        "Readiness probe failed: HTTP probe failed with statuscode: 404"
    );
    for _ in 0..2 {
        notes.touch("page")?;
        let seen = node.wait_ready("readiness-http")?;
        assert_eq!(condition(&seen, "ContainersReady")["status"], "True");
        notes.forget("page")?;
        let seen = node.wait("readiness-http", "is not ready", not_ready)?;
        let ready = condition(&seen, "Ready");
        assert_eq!(ready["reason"], "ContainersNotReady");
        assert_eq!(ready["message"], "containers with unready status: [main]");
        assert_eq!(container(&seen, "main")["ready"], false);
        assert_eq!(container(&seen, "other")["ready"], true);
        assert_eq!(seen["status"]["phase"], "Running");
        assert_eq!(restarts(&seen, "main"), 0);
    }
    Ok(())
}

#[test]
fn a_tcp_probe_detects_a_listener() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "readiness-tcp")?;
    let script = format!(
        "trap 'exit 0' TERM; while :; do {}; nc -ll -p 9000 -e true & wait $!; done",
        until("listen")
    );
    let main = with(
        shell("main", &script),
        &json!({ "ports": [{ "name": "db", "containerPort": 9000 }] }),
    );
    let spec = json!({
        "containers": [ready_by(main, &json!({ "tcpSocket": { "port": "db" } }))],
    });
    notes.touch("listen")?;
    node.apply(&notes.pod("readiness-tcp", spec))?;
    let seen = node.wait_ready("readiness-tcp")?;
    notes.forget("listen")?;
    node.exec("readiness-tcp", "main", &["killall", "nc"])?;
    let seen_later = node.wait("readiness-tcp", "is not ready", not_ready)?;
    assert_eq!(restarts(&seen_later, "main"), 0);
    let address = seen["status"]["podIP"].as_str().unwrap();
    let event = node.wait_event("readiness-tcp", "Unhealthy", "connection refused")?;
    assert_eq!(
        event,
        format!("Readiness probe failed: dial tcp {address}:9000: connect: connection refused")
    );
    notes.touch("listen")?;
    node.wait_ready("readiness-tcp")?;
    Ok(())
}

#[test]
fn a_grpc_probe_checks_the_named_service() -> Result<()> {
    let node = Node::shared()?;
    let server = GrpcServer::start()?;
    server.set("db", true);
    // A pod on the host's network has the host's address, where the server is.
    let probe = json!({ "grpc": { "port": server.port(), "service": "db" } });
    let spec = json!({
        "hostNetwork": true,
        "containers": [ready_by(waiting("main"), &probe)],
    });
    node.apply(&rubelet_testbed::manifest::pod("grpc", &spec))?;
    node.wait_ready("grpc")?;
    server.set("db", false);
    node.wait("grpc", "is not ready", not_ready)?;
    let event = node.wait_event("grpc", "Unhealthy", "unhealthy")?;
    assert_eq!(
        event,
        "Readiness probe failed: service unhealthy (responded with \"NOT_SERVING\")"
    );
    server.set("db", true);
    let seen = node.wait_ready("grpc")?;
    assert_eq!(restarts(&seen, "main"), 0);
    Ok(())
}

#[test]
fn an_http_probe_sends_its_headers_and_leaves_no_connection_behind() -> Result<()> {
    let node = Node::shared()?;
    let server = HttpServer::start("fine");
    let get = json!({
        "host": "127.0.0.1",
        "port": server.port(),
        "path": "/health",
        "httpHeaders": [
            { "name": "X-Probe", "value": "yes" },
            { "name": "Host", "value": "pod.example" },
        ],
    });
    // No program accepts connections: the kernel completes them by itself.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let connections = [server.port(), port].map(Connections::from_now);
    let tcp = json!({ "periodSeconds": 1, "tcpSocket": { "host": "127.0.0.1", "port": port } });
    let containers: Vec<Value> = (0..6)
        .map(|number| {
            let one = ready_by(waiting(&format!("c{number}")), &json!({ "httpGet": get }));
            with(one, &json!({ "livenessProbe": tcp }))
        })
        .collect();
    let pod = rubelet_testbed::manifest::pod("headers", &json!({ "containers": containers }));
    node.apply(&pod)?;
    node.wait("headers", "is ready", is_ready)?;
    crate::wait(&node, "there were many probes", || {
        Ok(server.requests().0 >= 30)
    })?;
    let (_, headers) = server.requests();
    assert_eq!(headers["x-probe"], "yes");
    assert_eq!(headers["host"], "pod.example");
    assert_eq!(headers["accept"], "*/*");
    assert!(
        headers["user-agent"].starts_with("kube-probe/"),
        "{headers:?}"
    );
    for connections in connections {
        assert_eq!(connections.in_time_wait(), 0, "connections in TIME_WAIT");
    }
    Ok(())
}
