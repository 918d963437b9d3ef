//! Responses in protobuf, for clients that accept it.

use http::{Method, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::{PODS, TestClient, pair, pod_on, ready_node, server};
use crate::{SimApi, protobuf};

const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";

async fn client(api: &SimApi) -> TestClient {
    TestClient::new(api).await.accepting(ACCEPT)
}

/// Code, media type and object of a response.
async fn answer(client: &mut TestClient, method: Method, path: &str, body: Value) -> (u16, Value) {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let sent = client
        .try_send(method, path, "application/json", body)
        .await;
    let response = sent.unwrap();
    let code = response.status().as_u16();
    assert_eq!(
        response.headers()[header::CONTENT_TYPE],
        protobuf::MEDIA_TYPE
    );
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, protobuf::read(&bytes).unwrap())
}

#[tokio::test(start_paused = true)]
async fn objects_lists_and_errors_are_the_same_in_protobuf() {
    let (api, mut json_client) = pair().await;
    let mut client = client(&api).await;
    api.create("nodes", &ready_node("n")).unwrap();
    let (code, made) = answer(&mut client, Method::POST, PODS, pod_on("web", "n")).await;
    assert_eq!((code, made["kind"].as_str()), (201, Some("Pod")));
    let event = json!({
        "metadata": { "name": "web.1", "namespace": "default" },
        "regarding": { "kind": "Pod", "namespace": "default", "name": "web" }, "reason": "Pulled", "note": "done",
        "eventTime": "2026-01-01T00:00:00.000001Z", "type": "Normal", "action": "Pull",
        "reportingController": "kubelet", "reportingInstance": "n",
    });
    api.create("events.events.k8s.io", &event).unwrap();
    for path in [
        &format!("{PODS}/web"),
        PODS,
        "/api/v1/nodes/n",
        "/api/v1/namespaces",
        "/api/v1/services",
        "/api/v1/serviceaccounts",
        "/api/v1/configmaps",
        "/api/v1/events",
        "/apis/events.k8s.io/v1/namespaces/default/events/web.1",
        "/apis/coordination.k8s.io/v1/leases",
        &format!("{PODS}/missing"),
    ] {
        let (code, same) = answer(&mut client, Method::GET, path, Value::Null).await;
        let (json_code, mut wanted) = json_client.get(path).await;
        // An empty list is not encoded.
        if wanted["items"] == json!([]) {
            wanted.as_object_mut().unwrap().remove("items");
        }
        assert_eq!((code, same), (json_code, wanted), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_frames() {
    let api = server().await;
    let mut client = client(&api).await;
    let made = api.create("pods", &pod_on("web", "n")).unwrap();
    let path = format!("{PODS}?watch=1&resourceVersion=0");
    let sent = client.try_send(Method::GET, &path, "", String::new()).await;
    let response = sent.unwrap();
    assert_eq!(
        response.headers()[header::CONTENT_TYPE],
        protobuf::STREAM_TYPE
    );
    let mut body = response.into_body();
    for kind in ["ADDED", "DELETED"] {
        if kind == "DELETED" {
            api.delete("pods", "default", "web", Some(0)).unwrap();
        }
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let (length, event) = frame.split_at(4);
        let length = u32::from_be_bytes(length.try_into().unwrap());
        assert_eq!(usize::try_from(length).unwrap(), event.len());
        assert!(
            event
                .windows(kind.len())
                .any(|part| part == kind.as_bytes())
        );
        let object = event.windows(4).position(|part| part == b"k8s\0").unwrap();
        let object = protobuf::read(&event[object..]).unwrap();
        assert_eq!(object["metadata"]["uid"], made["metadata"]["uid"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unsupported_format_is_refused() {
    let api = server().await;
    let mut client = TestClient::new(&api).await.accepting("application/yaml");
    let (code, error) = client.get(PODS).await;
    assert_eq!(
        (code, error["reason"].as_str()),
        (406, Some("NotAcceptable"))
    );
}
