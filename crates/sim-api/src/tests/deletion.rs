//! Deletion in two steps, preconditions, finalizers, namespaces.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{PODS, node_client, pair, pod, pod_on};

#[tokio::test(start_paused = true)]
async fn a_bound_pod_stays_until_its_node_removes_it() {
    let (api, mut client) = pair().await;
    let mut node = node_client(&api, "n").await;
    let made = api.create("pods", &pod_on("web", "n")).unwrap();
    let path = format!("{PODS}/web");
    let (code, marked) = client.delete(&path, &Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["generation"], 2);
    let end = marked["metadata"]["deletionTimestamp"].clone();
    let (_, again) = client
        .delete(&path, &json!({ "gracePeriodSeconds": 60 }))
        .await;
    assert_eq!(
        again["metadata"]["deletionTimestamp"], end,
        "it is never later"
    );
    let (_, sooner) = client
        .delete(&path, &json!({ "gracePeriodSeconds": 5 }))
        .await;
    assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], 5);
    let options = |uid: &Value| json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": uid } });
    let (code, error) = node.delete(&path, &options(&json!("other"))).await;
    assert_eq!((code, error["reason"].as_str()), (409, Some("Conflict")));
    let (code, _) = node.delete(&path, &options(&made["metadata"]["uid"])).await;
    assert_eq!(code, 200);
    assert!(api.get("pods", "default", "web").is_none());
    assert_eq!(client.delete(&path, &Value::Null).await.0, 404);
    assert!(api.violations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn unbound_and_finished_pods_are_removed_immediately() {
    let (api, mut client) = pair().await;
    api.create("pods", &pod("free")).unwrap();
    api.create("pods", &pod_on("done", "n")).unwrap();
    let status = json!({ "status": { "phase": "Succeeded" } });
    api.patch("pods/status", "", "done", &status).unwrap();
    for name in ["free", "done"] {
        assert_eq!(
            client
                .delete(&format!("{PODS}/{name}"), &Value::Null)
                .await
                .0,
            200
        );
        assert!(api.get("pods", "", name).is_none(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_removes_a_running_pod_is_a_violation() {
    let (api, _) = pair().await;
    let mut node = node_client(&api, "n").await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    api.on_node_delete(move |pod| {
        seen.lock().push(pod["metadata"]["name"].clone());
        Some("a container of it is there".to_owned())
    });
    api.create("pods", &pod_on("web", "n")).unwrap();
    let running = json!({ "status": { "phase": "Running", "containerStatuses": [
        { "name": "main", "restartCount": 0, "state": { "running": {} } },
    ] } });
    api.patch("pods/status", "", "web", &running).unwrap();
    api.delete("pods", "", "web", None).unwrap();
    node.delete(&format!("{PODS}/web"), &json!({ "gracePeriodSeconds": 0 }))
        .await;
    let told: Vec<String> = api.violations().into_iter().map(|one| one.what).collect();
    assert_eq!(
        told,
        [
            "removed while container main ran",
            "a container of it is there"
        ]
    );
    assert_eq!(*asked.lock(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let (api, mut client) = pair().await;
    let mut pod = pod("web");
    pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.create("pods", &pod).unwrap();
    let path = format!("{PODS}/web");
    client.delete(&path, &Value::Null).await;
    let held = api.get("pods", "", "web").unwrap();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    client
        .patch(&path, &json!({ "metadata": { "finalizers": null } }))
        .await;
    assert!(api.get("pods", "", "web").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_removed_after_its_last_pod() {
    let (api, mut client) = pair().await;
    api.create("namespaces", &json!({ "metadata": { "name": "other" } }))
        .unwrap();
    assert!(api.get("serviceaccounts", "other", "default").is_some());
    let mut pod = pod_on("web", "n");
    pod["metadata"]["namespace"] = "other".into();
    api.create("pods", &pod).unwrap();
    client
        .delete("/api/v1/namespaces/other", &Value::Null)
        .await;
    assert_eq!(
        api.get("namespaces", "", "other").unwrap()["status"]["phase"],
        "Terminating"
    );
    assert!(api.get("serviceaccounts", "other", "default").is_none());
    let (code, _) = client
        .post("/api/v1/namespaces/other/pods", &super::pod("late"))
        .await;
    assert_eq!(code, 403);
    api.delete("pods", "other", "web", Some(0)).unwrap();
    assert!(api.get("namespaces", "", "other").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_its_labels() {
    let (api, mut client) = pair().await;
    for name in ["a", "b"] {
        api.create("pods", &pod(name)).unwrap();
    }
    let (code, _) = client
        .delete(&format!("{PODS}?labelSelector=app=a"), &Value::Null)
        .await;
    assert_eq!(code, 200);
    assert_eq!(api.list("pods").len(), 1);
}
