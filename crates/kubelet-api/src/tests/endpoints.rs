//! Responses at each path to an authorized user.

use rubelet_server::{RunningPod, Unhealthy, testing::pod};
use serde_json::{Value, json};

use super::server::{Credentials, Reply, Server, Setup, rest};
use crate::EndpointOptions;

fn json_of(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).unwrap()
}

#[tokio::test]
async fn pods_are_a_pod_list_with_the_status_of_the_node() {
    let server = Server::start().await;
    let reply = server.get("/pods").await;
    assert!(reply.headers.contains("content-type: application/json"));
    assert!(
        reply
            .body
            .starts_with(r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"#)
    );
    let list = json_of(&reply);
    assert_eq!(list["items"][1]["metadata"]["name"], "web");
    assert_eq!(list["items"][1]["status"]["phase"], "Running");
    assert_eq!(list["items"][1]["kind"], Value::Null);
    assert_eq!(list["items"][1]["metadata"]["resourceVersion"], Value::Null);
}

#[tokio::test]
async fn many_pods_come_in_pieces_that_are_one_list() {
    let server = Server::start().await;
    for number in 0..300 {
        let name = format!("pod-{number}");
        server.node.pods.put(pod("many", &name, "many", &["a"]));
    }
    let list = json_of(&server.get("/pods/").await);
    assert_eq!(list["items"].as_array().unwrap().len(), 302);
}

#[tokio::test]
async fn running_pods_have_little_more_than_names() {
    let server = Server::start().await;
    let empty = server.get("/runningpods/").await;
    assert_eq!(
        empty.body,
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}\n"
    );
    *server.node.running.lock() = vec![RunningPod {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "u1".to_owned(),
        containers: vec![("a".to_owned(), "sha256:1".to_owned())],
    }];
    assert_eq!(
        json_of(&server.get("/runningpods/").await)["items"],
        json!([{
            "metadata": { "name": "web", "namespace": "default", "uid": "u1" },
            "spec": { "containers": [{ "name": "a", "image": "sha256:1", "resources": {} }] },
            "status": {},
        }])
    );
}

#[tokio::test]
async fn health_is_ok_or_says_what_is_wrong() {
    let server = Server::start().await;
    assert_eq!(server.get("/healthz").await.body, "ok");
    assert!(
        server
            .get("/healthz?verbose")
            .await
            .body
            .contains("[+]syncloop ok\n")
    );
    *server.node.syncloop.lock() = Err(Unhealthy("pods are stuck".to_owned()));
    let reply = server.get("/healthz").await;
    assert_eq!(reply.code, 500);
    assert!(reply.body.contains("[-]syncloop failed: pods are stuck\n"));
    assert_eq!(server.get("/healthz/syncloop").await.code, 500);
    assert_eq!(server.get("/healthz/ping").await.code, 200);
}

#[tokio::test]
async fn numbers_and_configuration_are_shown() {
    let server = Server::start().await;
    let metrics = server.get("/metrics").await;
    assert!(metrics.headers.contains("text/plain; version=0.0.4"));
    // With the numbers that name containers.
    assert_eq!(metrics.body, "# TYPE a counter\na 1\n# TYPE d gauge\nd 1\n");
    let probes = server.get("/metrics/probes").await;
    assert!(probes.body.contains("prober_probe_total 1"));
    let resource = server.get("/metrics/resource").await;
    assert!(resource.headers.contains("text/plain; version=0.0.4"));
    assert_eq!(resource.body, "# TYPE b gauge\nb 1\n");
    let cadvisor = server.get("/metrics/cadvisor").await;
    assert_eq!(cadvisor.body, "# TYPE c gauge\nc 1\n");
    let summary = json_of(&server.get("/stats/summary").await);
    let expected = serde_json::json!({ "live": false, "short": false });
    assert_eq!(summary["node"], expected);
    let short = server.get("/stats/summary?only_cpu_and_memory=true").await;
    assert_eq!(json_of(&short)["node"]["short"], true);
    let config = json_of(&server.get("/configz").await);
    assert!(config["kubeletconfig"].is_object());
}

#[tokio::test]
async fn what_is_not_served_names_what_to_use() {
    let server = Server::start().await;
    let ann = Credentials::Token("tok-ann");
    let reply = server.ask(&ann, "POST", "/checkpoint/default/web/a").await;
    assert_eq!(
        (reply.code, &*reply.body),
        (
            501,
            "checkpoints are not served by this node yet; on the node, use: crictl checkpoint\n"
        )
    );
}

#[tokio::test]
async fn metrics_that_are_not_served_are_a_comment_in_the_format_of_metrics() {
    let server = Server::start().await;
    let path = "/metrics/slis";
    let reply = server.get(path).await;
    assert_eq!(reply.code, 501, "{path}");
    assert!(
        reply.headers.contains("text/plain; version=0.0.4"),
        "{path}"
    );
    let mut lines = reply.body.lines();
    assert!(lines.all(|line| line.starts_with("# ")), "{}", reply.body);
    assert!(reply.body.ends_with('\n'), "{path}");
}

#[tokio::test]
async fn wrong_methods_get_the_right_ones() {
    let server = Server::start().await;
    let ann = Credentials::Token("tok-ann");
    let reply = server.ask(&ann, "POST", "/pods").await;
    assert_eq!((reply.code, &*reply.body), (405, "405: Method Not Allowed"));
    assert!(reply.headers.contains("allow: get"));
    let reply = server.ask(&ann, "GET", "/pods/x").await;
    assert_eq!((reply.code, &*reply.body), (404, "404: Page Not Found"));
}

#[tokio::test]
async fn without_debugging_handlers_logs_and_others_are_off() {
    let server = Server::with(Setup {
        options: EndpointOptions {
            debugging_handlers: false,
            ..EndpointOptions::default()
        },
        ..Setup::default()
    })
    .await;
    for path in [
        "/containerLogs/default/web/a",
        "/exec/a/b/c",
        "/runningpods/",
    ] {
        let reply = server.get(path).await;
        assert_eq!(
            (reply.code, &*reply.body),
            (405, "Debug endpoints are disabled.\n"),
            "{path}"
        );
        // Unauthenticated clients are not told that they are off.
        let unauthenticated = server.ask(&Credentials::None, "GET", path).await;
        assert_eq!(unauthenticated.code, 401, "{path}");
    }
    assert_eq!(server.get("/configz").await.code, 404);
    assert_eq!(server.get("/pods").await.code, 200);
}

#[tokio::test]
async fn the_plain_port_has_what_needs_no_right_and_nothing_else() {
    use tokio::{io::AsyncWriteExt as _, net::TcpStream};
    let server = Server::read_only().await;
    for (path, code) in [
        ("/healthz", 200),
        ("/pods", 200),
        ("/metrics", 200),
        ("/metrics/probes", 200),
        ("/metrics/resource", 200),
        ("/stats/summary", 200),
        ("/configz", 404),
        ("/x", 404),
        ("/containerLogs/default/web/a", 405),
        ("/exec/default/web/a", 405),
        ("/run/default/web/a", 405),
        ("/runningpods/", 405),
        ("/logs/", 405),
        ("/debug/pprof/", 405),
        ("/checkpoint/default/web/a", 404),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let reply = Reply::read(&rest(&mut stream).await);
        assert_eq!(reply.code, code, "{path}");
    }
    let notes = server.notes.take();
    assert_eq!(notes[0], "began GET healthz readonly");
    server.stop().await;
}

#[tokio::test]
async fn files_of_the_system_are_shown_as_by_a_file_server() {
    let server = Server::start().await;
    let page = server.get("/logs/").await;
    assert!(
        page.headers
            .contains("content-type: text/html; charset=utf-8")
    );
    let line = "<a href=\"./%3Cb%3E:1.log\">&lt;b&gt;:1.log</a>\n<a href=\"pods/\">pods/</a>\n";
    assert!(page.body.contains(line), "{}", page.body);
    let file = server.get("/logs/%3Cb%3E:1.log").await;
    assert_eq!((file.code, file.body.as_str()), (200, "<b>\n"));
    assert!(
        file.headers
            .contains("content-type: text/plain; charset=utf-8")
    );
    assert!(file.headers.contains("x-content-type-options: nosniff"));
    for (path, code, to) in [
        ("/logs", 301, "location: logs/"),
        ("/logs/%3Cb%3E:1.log/", 301, "location: ../%3cb%3e:1.log"),
        ("/logs/missing", 404, ""),
        ("/logs/away", 403, ""),
    ] {
        let reply = server.get(path).await;
        assert_eq!(reply.code, code, "{path}");
        assert!(reply.headers.contains(to), "{}", reply.headers);
    }
}
