//! Lists, tables and discovery.

use serde_json::json;

use super::{PODS, TestClient, pair, pod, pod_on, ready_node};

#[tokio::test(start_paused = true)]
async fn chunks_of_a_list_have_one_version() {
    let (api, mut client) = pair().await;
    for name in ["a", "b", "c", "d", "e"] {
        api.create("pods", &pod(name)).unwrap();
    }
    let (_, first) = client.get(&format!("{PODS}?limit=2")).await;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let next = first["metadata"]["continue"].as_str().unwrap();
    // Later changes are not in the list.
    api.delete("pods", "", "d", Some(0)).unwrap();
    let (_, rest) = client
        .get(&format!("{PODS}?limit=10&continue={next}"))
        .await;
    let names = rest["items"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|item| item["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["c", "d", "e"]);
    assert_eq!(
        rest["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    assert!(rest["metadata"].get("continue").is_none());
    api.compact();
    let (code, error) = client.get(&format!("{PODS}?limit=2&continue={next}")).await;
    assert_eq!((code, error["reason"].as_str()), (410, Some("Expired")));
}

#[tokio::test(start_paused = true)]
async fn pods_are_listed_by_node_and_phase() {
    let (api, mut client) = pair().await;
    api.create("pods", &pod_on("a", "n")).unwrap();
    api.create("pods", &pod_on("b", "m")).unwrap();
    for (selector, count) in [
        ("spec.nodeName=n", 1),
        ("spec.nodeName!=n", 1),
        ("status.phase=Pending", 2),
        ("spec.nodeName=n,status.phase=Failed", 0),
    ] {
        let (_, list) = client
            .get(&format!("/api/v1/pods?fieldSelector={selector}"))
            .await;
        assert_eq!(list["items"].as_array().unwrap().len(), count, "{selector}");
        assert_eq!(list["kind"], "PodList");
    }
    assert_eq!(
        client
            .get("/api/v1/pods?fieldSelector=spec.image=x")
            .await
            .0,
        400
    );
    let version = api.version() + 1;
    let (code, _) = client
        .get(&format!("{PODS}?resourceVersion={version}"))
        .await;
    assert_eq!(code, 504, "a version that is not there yet");
}

#[tokio::test(start_paused = true)]
async fn tables_are_served_on_request() {
    let (api, _) = pair().await;
    api.create("nodes", &ready_node("n")).unwrap();
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let mut client = TestClient::new(&api).await.accepting(accept);
    let (_, table) = client.get("/api/v1/nodes").await;
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"][0]["cells"][1], "Ready");
    let mut lines = client.watch("/api/v1/nodes?watch=1").await;
    let event = lines.next().await.unwrap();
    assert_eq!(
        event["object"]["rows"][0]["object"]["metadata"]["name"],
        "n"
    );
}

#[tokio::test(start_paused = true)]
async fn discovery_names_every_group_and_resource() {
    let (_api, mut client) = pair().await;
    let (_, groups) = client.get("/apis").await;
    for group in groups["groups"].as_array().unwrap() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        let (code, list) = client.get(&format!("/apis/{version}")).await;
        assert_eq!(code, 200, "{version}");
        assert!(!list["resources"].as_array().unwrap().is_empty());
        let name = group["name"].as_str().unwrap();
        assert_eq!(
            client.get(&format!("/apis/{name}")).await.1["kind"],
            "APIGroup"
        );
    }
    let (_, core) = client.get("/api/v1").await;
    let names = core["resources"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|resource| resource["name"].clone()).collect();
    for name in [
        "pods",
        "pods/status",
        "pods/log",
        "serviceaccounts/token",
        "nodes/status",
    ] {
        assert!(names.contains(&json!(name)), "{name}");
    }
    assert_eq!(client.get("/version").await.1["minor"], "36");
    assert_eq!(client.get("/healthz").await.0, 200);
}
