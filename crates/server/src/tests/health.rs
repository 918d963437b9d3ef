//! Health endpoints, on the socket and on the health port.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
};

use super::fixture::TestServer;
use crate::{NodeView, Unhealthy, bind_health, serve_health, testing::FakeNode};

#[tokio::test]
async fn a_healthy_node_says_ok() {
    let server = TestServer::with_pods().await;
    for path in [
        "/healthz",
        "/healthz/ping",
        "/healthz/log",
        "/healthz/syncloop",
        "/livez",
        "/livez/syncloop",
        "/readyz",
        "/readyz/node",
    ] {
        let reply = server.get(path).await;
        assert_eq!((reply.code, reply.body.as_str()), (200, "ok"), "{path}");
    }
    let verbose = server.get("/readyz?verbose").await.body;
    assert_eq!(
        verbose,
        "[+]ping ok\n[+]log ok\n[+]syncloop ok\n[+]node ok\n3 pods\nreadyz check passed\n"
    );
    assert_eq!(server.get("/healthz/other").await.code, 404);
    assert_eq!(server.get("/livez/node").await.code, 404);
    let head = server.open("HEAD", "/healthz", "").await;
    assert_eq!(head.code, 200);
}

#[tokio::test]
async fn a_stuck_loop_fails_health_and_names_itself() {
    let server = TestServer::with_pods().await;
    *server.node.syncloop.lock() = Err(Unhealthy("no iteration for 6m".to_owned()));
    for path in ["/healthz", "/livez", "/readyz"] {
        let reply = server.get(path).await;
        assert_eq!(reply.code, 500, "{path}");
        assert!(
            reply
                .body
                .contains("[-]syncloop failed: no iteration for 6m\n"),
            "{}",
            reply.body
        );
    }
    let single = server.get("/healthz/syncloop").await;
    assert_eq!(
        (single.code, single.body.as_str()),
        (500, "internal server error: no iteration for 6m\n")
    );
    assert_eq!(server.get("/healthz/ping").await.code, 200);
}

#[tokio::test]
async fn readiness_waits_for_the_node_and_liveness_does_not() {
    let server = TestServer::with_pods().await;
    *server.node.ready.lock() = Err(Unhealthy("runtime is down".to_owned()));
    assert_eq!(server.get("/livez").await.code, 200);
    let reply = server.get("/readyz").await;
    assert_eq!(reply.code, 500);
    assert!(reply.body.contains("[-]node failed: runtime is down\n"));
}

#[tokio::test]
async fn metrics_are_in_the_text_format_of_prometheus() {
    let server = TestServer::start().await;
    let reply = server.get("/metrics").await;
    assert_eq!(
        (reply.code, reply.body.as_str()),
        (200, "# TYPE a counter\na 1\n")
    );
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8\r\n";
    assert!(reply.headers.contains(kind), "{}", reply.headers);
    let refused = server.request("POST", "/metrics", "").await;
    assert_eq!(refused.code, 405);
    assert!(
        refused.headers.contains("allow: get"),
        "{}",
        refused.headers
    );
}

#[tokio::test]
async fn the_health_port_serves_health_and_metrics_and_nothing_else() {
    let listener = bind_health("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let taken = bind_health(address).await.expect_err("the port is taken");
    assert_eq!(
        taken.to_string(),
        format!("cannot listen on the health address {address}")
    );
    let (stop, stopped) = oneshot::channel::<()>();
    let view: Arc<dyn NodeView> = Arc::new(FakeNode::default());
    let server = tokio::spawn(serve_health(listener, view, Arc::new(()), async {
        let _ = stopped.await;
    }));
    for (path, start, end) in [
        ("/healthz", "HTTP/1.1 200 ", "\r\n\r\nok"),
        ("/healthz/syncloop", "HTTP/1.1 200 ", "\r\n\r\nok"),
        ("/healthz/ping", "HTTP/1.1 200 ", "\r\n\r\nok"),
        ("/healthz/log", "HTTP/1.1 200 ", "\r\n\r\nok"),
        (
            "/metrics",
            "HTTP/1.1 200 ",
            "\r\n\r\n# TYPE a counter\na 1\n",
        ),
        ("/readyz", "HTTP/1.1 404 ", ""),
        ("/api/v1/pods", "HTTP/1.1 404 ", ""),
        ("/configz", "HTTP/1.1 404 ", ""),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: node\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(
            reply.starts_with(start) && reply.ends_with(end),
            "{path}: {reply}"
        );
    }
    stop.send(()).unwrap();
    server.await.unwrap();
}
