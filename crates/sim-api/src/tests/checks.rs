//! Validation of leases, events and statuses.

use serde_json::{Value, json};

use super::{PODS, pair, pod_on};

/// The field of the first cause.
fn field(answer: &Value) -> &str {
    answer["details"]["causes"][0]["field"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn leases_with_invalid_numbers_are_refused() {
    let (_api, mut client) = pair().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease = |spec: Value| json!({ "metadata": { "name": "n" }, "spec": spec });
    let (code, error) = client
        .post(path, &lease(json!({ "leaseDurationSeconds": 0 })))
        .await;
    assert_eq!((code, field(&error)), (422, "spec.leaseDurationSeconds"));
    let fine = lease(json!({ "leaseDurationSeconds": 40, "leaseTransitions": 0 }));
    assert_eq!(client.post(path, &fine).await.0, 201);
    let patch = json!({ "spec": { "leaseTransitions": -1 } });
    let (code, error) = client.patch(&format!("{path}/n"), &patch).await;
    assert_eq!((code, field(&error)), (422, "spec.leaseTransitions"));
}

#[tokio::test(start_paused = true)]
async fn events_are_validated_by_their_group() {
    let (_api, mut client) = pair().await;
    const CORE: &str = "/api/v1/namespaces/default/events";
    const NEWER: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
    let newer = |change: &dyn Fn(&mut Value)| {
        let mut event = json!({
            "metadata": { "generateName": "e" }, "eventTime": "2026-01-01T00:00:00.000000Z",
            "regarding": { "kind": "Pod", "name": "web", "namespace": "default" }, "type": "Normal",
            "reason": "Pulled", "action": "Pull", "reportingController": "kubelet",
            "reportingInstance": "n",
        });
        change(&mut event);
        event
    };
    for (path, event, wanted) in [
        (
            CORE,
            json!({ "metadata": { "name": "a" }, "involvedObject": { "namespace": "default" } }),
            "",
        ),
        (
            CORE,
            json!({ "metadata": { "name": "b" }, "involvedObject": { "namespace": "other" } }),
            "involvedObject.namespace",
        ),
        (
            CORE,
            json!({
                "metadata": { "name": "c" }, "involvedObject": { "namespace": "default" },
                "eventTime": "2026-01-01T00:00:00.000000Z",
            }),
            "reportingComponent",
        ),
        (NEWER, newer(&|_| {}), ""),
        (
            NEWER,
            newer(&|event| event["eventTime"] = Value::Null),
            "eventTime",
        ),
        (NEWER, newer(&|event| event["action"] = "".into()), "action"),
        (
            NEWER,
            newer(&|event| event["note"] = "x".repeat(1025).into()),
            "message",
        ),
        (NEWER, newer(&|event| event["type"] = "Bad".into()), "type"),
        (
            NEWER,
            newer(&|event| event["deprecatedCount"] = 1.into()),
            "count",
        ),
        (
            NEWER,
            newer(&|event| event["series"] = json!({ "count": 1 })),
            "series.count",
        ),
    ] {
        let mut event = event;
        crate::meta::drop_nulls(&mut event);
        let (code, answer) = client.post(path, &event).await;
        let wanted_code = if wanted.is_empty() { 201 } else { 422 };
        assert_eq!(
            (code, field(&answer)),
            (wanted_code, wanted),
            "{event}: {answer}"
        );
    }
    let (_, made) = client.post(NEWER, &newer(&|_| {})).await;
    let path = format!("{NEWER}/{}", made["metadata"]["name"].as_str().unwrap());
    let (code, error) = client.patch(&path, &json!({ "note": "other" })).await;
    assert_eq!((code, field(&error)), (422, "message"));
    let series =
        json!({ "series": { "count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z" } });
    assert_eq!(client.patch(&path, &series).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_completed_and_validated() {
    let (api, mut client) = pair().await;
    api.create("pods", &pod_on("web", "n")).unwrap();
    let path = format!("{PODS}/web/status");
    let status = |status: Value| json!({ "status": status });
    let (code, pod) = client
        .patch(&path, &status(json!({ "podIP": "10.0.0.1" })))
        .await;
    assert_eq!(code, 200);
    assert_eq!(pod["status"]["podIPs"], json!([{ "ip": "10.0.0.1" }]));
    let two = json!({ "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }] });
    let (code, error) = client.patch(&path, &status(two)).await;
    assert_eq!(code, 422, "{error}");
    let nominated = status(json!({ "nominatedNodeName": "m" }));
    let (code, error) = client.patch(&path, &nominated).await;
    assert_eq!((code, field(&error)), (422, "status.nominatedNodeName"));
}

#[tokio::test(start_paused = true)]
async fn allocatable_of_a_node_defaults_to_its_capacity() {
    let (_api, mut client) = pair().await;
    const NODES: &str = "/api/v1/nodes";
    let allocatable = |node: &Value| node["status"]["allocatable"].clone();
    let capacity = json!({ "cpu": "2", "pods": "110" });
    let node = json!({ "metadata": { "name": "n" }, "status": { "capacity": capacity } });
    let (_, made) = client.post(NODES, &node).await;
    assert_eq!(allocatable(&made), capacity);
    let status = format!("{NODES}/n/status");
    let less = json!({ "status": { "allocatable": { "cpu": "1" } } });
    let (_, patched) = client.patch(&status, &less).await;
    assert_eq!(allocatable(&patched)["cpu"], "1");
    let mut whole = patched.clone();
    whole["status"]
        .as_object_mut()
        .unwrap()
        .remove("allocatable");
    let (code, replaced) = client.put(&status, &whole).await;
    assert_eq!((code, allocatable(&replaced)), (200, capacity));

    let bare = json!({ "metadata": { "name": "bare" } });
    let (_, made) = client.post(NODES, &bare).await;
    assert!(made["status"].get("allocatable").is_none(), "{made}");
}
