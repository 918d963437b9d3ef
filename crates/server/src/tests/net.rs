//! Probes from inside pods: what is asked of the node, and what is answered.

use super::fixture::TestServer;

const NET: &str = "/apis/node.rubelet.dev/v1alpha1/namespaces/default/pods/web/net";

#[tokio::test]
async fn reports_are_lines_and_the_end_of_the_body_stops_the_probe() {
    let server = TestServer::with_pods().await;
    let probe = format!("{NET}?probe=%7B%22probe%22%3A%22ping%22%7D");
    let answer = server.request("POST", &probe, "").await;
    assert_eq!(
        (answer.code, &*answer.body),
        (200, "{\"probe\":\"ping\"}\n")
    );
    let stopped = server.send("POST", &probe, "text/plain", "x").await;
    assert_eq!(
        (stopped.code, &*stopped.body),
        (200, "{\"probe\":\"ping\"}\nstopped\n")
    );
    server.stop().await;
}

#[tokio::test]
async fn each_refusal_has_its_code() {
    let server = TestServer::with_pods().await;
    for (probe, code, message) in [
        ("bad", 400, "no probe"),
        ("early", 409, "the pod has no sandbox that is ready"),
        ("busy", 429, "too many probes are under way; try again"),
        ("broken", 500, "no socket"),
    ] {
        let url = format!("{NET}?probe=%7B%22probe%22%3A%22{probe}%22%7D");
        let refused = server.request("POST", &url, "").await;
        assert_eq!(refused.code, code, "{probe}");
        assert_eq!(refused.json()["message"], message);
    }
    for (method, query, code) in [
        ("POST", "", 400),
        ("POST", "?probe=", 400),
        ("POST", "?probe=%7B", 400),
        ("GET", "?probe=%7B%7D", 405),
        ("PUT", "?probe=%7B%7D", 405),
    ] {
        let refused = server.request(method, &format!("{NET}{query}"), "").await;
        assert_eq!(refused.code, code, "{method} {query}");
    }
    let other = NET.replace("web", "none");
    let refused = server
        .request("POST", &format!("{other}?probe=%7B%7D"), "")
        .await;
    assert_eq!(refused.code, 404);
    server.stop().await;
}
