//! Pod caches that lag behind the storage.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{PODS, TestClient, node_client, pair, pod};
use crate::{PodCache, SimApi};

const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";

/// A server with an unbound pod that references a config map, and a node's token request for it.
async fn server() -> (SimApi, Value) {
    let (api, _) = pair().await;
    api.configure(|config| {
        config.node_authorization = true;
        config.scheduler = false;
    });
    let map = json!({ "metadata": { "name": "map" } });
    api.create("configmaps", &map).unwrap();
    let mut web = pod("web");
    let token = json!({ "serviceAccountToken": { "path": "t" } });
    web["spec"]["volumes"] = json!([
        { "name": "m", "configMap": { "name": "map" } },
        { "name": "t", "projected": { "sources": [token] } },
    ]);
    let web = api.create("pods", &web).unwrap();
    let bound = json!({
        "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": web["metadata"]["uid"],
    });
    (api, json!({ "spec": { "boundObjectRef": bound } }))
}

async fn bind(api: &SimApi) {
    let mut admin = TestClient::new(api).await;
    let target = json!({ "apiVersion": "v1", "kind": "Node", "name": "n" });
    let binding = json!({ "metadata": { "name": "web" }, "target": target });
    let (code, answer) = admin.post(&format!("{PODS}/web/binding"), &binding).await;
    assert_eq!(code, 201, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_just_bound_has_no_node_in_lagging_caches() {
    let (api, request) = server().await;
    for cache in [PodCache::Authorizer, PodCache::NodeRestriction] {
        api.hold_pods(cache);
    }
    bind(&api).await;
    let mut node = node_client(&api, "n").await;
    let map = "/api/v1/namespaces/default/configmaps/map";
    let unrelated = "no relationship found between node 'n' and this object";
    let (code, answer) = node.get(map).await;
    assert_eq!(code, 403);
    assert!(answer["message"].as_str().unwrap().ends_with(unrelated));
    let (code, answer) = node.post(TOKENS, &request).await;
    assert_eq!(code, 403);
    assert!(answer["message"].as_str().unwrap().ends_with(unrelated));

    api.release_pods(PodCache::Authorizer);
    assert_eq!(node.get(map).await.0, 200);
    let (code, answer) = node.post(TOKENS, &request).await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "serviceaccounts \"default\" is forbidden: node requested token bound to a pod \
         scheduled on a different node"
    );
    let (code, answer) = node.delete(&format!("{PODS}/web"), &json!({})).await;
    assert_eq!(code, 403, "{answer}");

    api.release_pods(PodCache::NodeRestriction);
    assert_eq!(node.post(TOKENS, &request).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_does_not_exist_in_lagging_caches() {
    let (api, mut request) = server().await;
    api.hold_pods(PodCache::NodeRestriction);
    let new = api.create("pods", &super::pod_on("new", "n")).unwrap();
    let bound = &mut request["spec"]["boundObjectRef"];
    bound["name"] = "new".into();
    bound["uid"] = new["metadata"]["uid"].clone();
    let mut node = node_client(&api, "n").await;
    let (code, answer) = node.post(TOKENS, &request).await;
    assert_eq!(
        (code, &answer["message"]),
        (404, &json!("pods \"new\" not found"))
    );
}

#[tokio::test(start_paused = true)]
async fn caches_lag_by_the_configured_time() {
    const LAG: Duration = Duration::from_millis(20);
    let (api, request) = server().await;
    let mut node = node_client(&api, "n").await;
    tokio::time::sleep(LAG).await;
    api.configure(|config| config.cache_lag = LAG);
    bind(&api).await;
    let bound = Instant::now();
    let map = "/api/v1/namespaces/default/configmaps/map";
    let own = format!("{PODS}?fieldSelector=spec.nodeName%3Dn");
    let (code, pods) = node.get(&own).await;
    assert_eq!((code, pods["items"].as_array().unwrap().len()), (200, 1));
    assert_eq!(node.get(map).await.0, 403);
    assert_eq!(node.post(TOKENS, &request).await.0, 403);
    // A pod that the authorizer knows, with a token that only NodeRestriction can deny.
    api.configure(|config| config.node_authorization = false);
    let (code, answer) = node.post(TOKENS, &request).await;
    assert_eq!(code, 403);
    let other = "node requested token bound to a pod scheduled on a different node";
    assert!(answer["message"].as_str().unwrap().ends_with(other));
    api.configure(|config| config.node_authorization = true);

    tokio::time::sleep_until(bound + LAG - Duration::from_millis(1)).await;
    assert_eq!(node.get(map).await.0, 403);
    tokio::time::sleep_until(bound + LAG).await;
    assert_eq!(node.get(map).await.0, 200);
    assert_eq!(node.post(TOKENS, &request).await.0, 201);

    api.delete("pods", "default", "web", Some(0)).unwrap();
    assert_eq!(node.get(map).await.0, 200, "what was removed is known");
    tokio::time::sleep(LAG).await;
    assert_eq!(node.get(map).await.0, 403);
    assert!(api.violations().is_empty());
}
