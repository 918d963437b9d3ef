//! Probes from inside pods: what is asked of the node, and what is answered.

use bytes::Bytes;
use futures_util::stream;

use super::fixture::TestServer;
use crate::{NetRefusal, NetRequest, NetStream};

const NET: &str = "/apis/node.rubelet.dev/v1alpha1/namespaces/default/pods/web/net";

/// Reports the probe in two lines, the second one when the client ends its request, if that has a
/// body. Some probes are refused.
pub(super) async fn answer(request: NetRequest) -> Result<NetStream, NetRefusal> {
    if &*request.pod.name != "web" {
        return Err(NetRefusal::NoPod);
    }
    match request.probe["probe"].as_str() {
        Some("bad") => return Err(NetRefusal::Invalid("no probe".to_owned())),
        Some("early") => return Err(NetRefusal::NotReady),
        Some("busy") => return Err(NetRefusal::Busy),
        Some("broken") => return Err(NetRefusal::Internal("no socket".to_owned())),
        _ => {}
    }
    let first = format!("{}\n", request.probe);
    let lines = stream::unfold((Some(first), request.stop), |(first, stop)| async {
        match (first, stop) {
            (Some(line), stop) => Some((Ok(Bytes::from(line)), (None, stop))),
            (None, Some(stop)) => {
                stop.await;
                Some((Ok(Bytes::from_static(b"stopped\n")), (None, None)))
            }
            (None, None) => None,
        }
    });
    Ok(Box::pin(lines))
}

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
