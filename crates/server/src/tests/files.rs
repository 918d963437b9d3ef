//! Files of containers: what is asked of the node, and what is answered.

use serde_json::json;

use super::fixture::TestServer;

const FILES: &str = "/api/v1/namespaces/default/pods/web/files";

#[tokio::test]
async fn files_are_read_and_written_as_streams() {
    let server = TestServer::with_pods().await;
    let read = server.get(&format!("{FILES}?path=/x%20y")).await;
    assert_eq!((read.code, &*read.body), (200, "one two"));
    assert!(
        read.headers.contains("application/x-tar"),
        "{}",
        read.headers
    );
    // Far more than a document may have.
    let long = "x".repeat(5 << 20);
    let written = server
        .send(
            "PUT",
            &format!("{FILES}?path=/x&container=a"),
            "application/x-tar",
            &long,
        )
        .await;
    assert_eq!(written.code, 200);
    let expected = json!({ "kind": "FilesReceived", "apiVersion": "node.rubelet.dev/v1alpha1",
                           "entries": 1, "bytes": 5 << 20, "skipped": ["fifo"] });
    assert_eq!(written.json(), expected);
    server.stop().await;
}

#[tokio::test]
async fn each_refusal_has_its_code() {
    let server = TestServer::with_pods().await;
    for (path, code, message) in [
        ("/none", 404, "\"/none\": not there"),
        ("/bad", 400, "no tar"),
        ("/dir", 409, "it is a directory"),
        ("/ended", 409, "the container does not run"),
        ("/busy", 429, "too many copies are under way; try again"),
        ("/full", 500, "no space"),
    ] {
        let refused = server.get(&format!("{FILES}?path={path}")).await;
        assert_eq!(refused.code, code, "{path}");
        assert_eq!(refused.json()["message"], message);
    }
    for (method, query, code) in [
        ("GET", "", 400),
        ("GET", "?path=", 400),
        ("GET", "?path=/x&container=c", 400),
        ("POST", "?path=/x", 405),
        ("DELETE", "?path=/x", 405),
    ] {
        let refused = server.request(method, &format!("{FILES}{query}"), "").await;
        assert_eq!(refused.code, code, "{method} {query}");
    }
    let other = "/api/v1/namespaces/default/pods/none/files?path=/x";
    assert_eq!(server.get(other).await.code, 404);
    server.stop().await;
}
