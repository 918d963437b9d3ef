//! The server, tested by clients over in-memory connections with paused time.

mod caches;
mod certificates;
mod checks;
mod client;
mod deletion;
mod faults;
mod listing;
mod logs;
mod protobuf;
mod reviews;
mod rules;
mod sessions;
mod storm;
mod tokens;
mod watching;
mod writing;

use serde_json::{Value, json};

use self::client::TestClient;
use crate::{SimApi, SimApiConfig, User};

/// A server with settings for tests.
async fn server() -> SimApi {
    SimApi::start(SimApiConfig::default()).await.unwrap()
}

/// A server and an administrator's client.
async fn pair() -> (SimApi, TestClient) {
    let api = server().await;
    let client = TestClient::new(&api).await;
    (api, client)
}

/// A node's client.
async fn node_client(api: &SimApi, node: &str) -> TestClient {
    api.add_token(node, User::node(node));
    TestClient::new(api).await.with_token(node)
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
    })
}

fn pod_on(name: &str, node: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = node.into();
    pod
}

fn ready_node(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

const PODS: &str = "/api/v1/namespaces/default/pods";
