//! Lifecycle events of pods, as a collection.

use serde_json::json;

use super::fixture::TestServer;
use crate::{Object, testing::FakeNode};

const OWN: &str = "/apis/node.rubelet.dev/v1alpha1";

fn put(node: &FakeNode, namespace: &str, name: &str, pod: &str, to_sync: Option<f64>) {
    let json = json!({
        "metadata": { "name": name, "namespace": namespace },
        "time": "2026-03-01T12:00:00Z",
        "pod": { "name": pod },
        "container": "main",
        "type": "ContainerDied",
        "cause": "event STOPPED",
        "toSyncSeconds": to_sync,
    });
    node.lifecycle
        .put(Object::new(namespace, name, move || json.clone()));
}

#[tokio::test]
async fn they_are_listed_by_namespace_and_pod_and_shown_as_a_table() {
    let server = TestServer::start().await;
    for (namespace, name, pod) in [
        ("default", "1", "web"),
        ("default", "2", "db"),
        ("x", "3", "web"),
    ] {
        put(&server.node, namespace, name, pod, Some(0.002));
    }
    for (path, names) in [
        ("podlifecycleevents", vec!["1", "2", "3"]),
        ("namespaces/default/podlifecycleevents", vec!["1", "2"]),
        (
            "podlifecycleevents?fieldSelector=pod.name%3Dweb",
            vec!["1", "3"],
        ),
        (
            "podlifecycleevents?fieldSelector=type%3DContainerStarted",
            vec![],
        ),
    ] {
        assert_eq!(
            server.get(&format!("{OWN}/{path}")).await.names(),
            names,
            "{path}"
        );
    }
    let path = format!("{OWN}/namespaces/default/podlifecycleevents/2");
    let one = server.get(&path).await.json();
    assert_eq!(
        (&one["kind"], &one["apiVersion"], &one["pod"]["name"]),
        (
            &json!("PodLifecycleEvent"),
            &json!("node.rubelet.dev/v1alpha1"),
            &json!("db")
        )
    );
    let accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
    let table = server.request("GET", &path, accept).await.json();
    assert_eq!(table["columnDefinitions"][8]["name"], "Sync");
    assert_eq!(table["rows"][0]["cells"][8], "2.0ms");
    let refused = server
        .get(&format!(
            "{OWN}/podlifecycleevents?fieldSelector=reason%3Dx"
        ))
        .await;
    assert_eq!(refused.code, 400);
    let deleted = server.request("DELETE", &path, "").await;
    assert_eq!(deleted.code, 405);
}

#[tokio::test]
async fn a_watch_tells_of_an_event_again_when_its_pod_was_synchronised() {
    let server = TestServer::start().await;
    let path = format!("{OWN}/podlifecycleevents?watch=true");
    let mut watch = server.open("GET", &path, "").await;
    put(&server.node, "default", "1", "web", None);
    assert_eq!(watch.change().await, "ADDED 1");
    put(&server.node, "default", "1", "web", Some(0.5));
    let (kind, _, event) = watch.event().await;
    assert_eq!(
        (kind.as_str(), &event["toSyncSeconds"]),
        ("MODIFIED", &json!(0.5))
    );
}
