//! Service accounts, and tokens of them for image pulls.

use std::{sync::Arc, time::Duration};

use rubelet_api::pod::Pod;
use rubelet_node_state::objects::{ObjectSource, ServiceAccount, ServiceAccounts};
use serde_json::json;
use tokio::time::sleep;

use super::cluster::{Cluster, Mood, pod, seconds, settle};

const PATH: &str = "/api/v1/namespaces/default/serviceaccounts/builder";

fn of_builder(name: &str) -> Arc<Pod> {
    pod(name, json!({"serviceAccountName": "builder"}), json!({}))
}

fn put(cluster: &Cluster, uid: &str) {
    let metadata = json!({"uid": uid, "annotations": {"role": "pull"}});
    cluster.api.put(PATH, json!({ "metadata": metadata }));
}

fn account(uid: &str) -> ServiceAccount {
    ServiceAccount {
        uid: uid.into(),
        annotations: [("role".to_owned(), "pull".to_owned())].into(),
    }
}

impl Cluster {
    async fn account(&self, pod: &Arc<Pod>) -> Result<ServiceAccount, String> {
        let found = self.objects.service_account(pod).await;
        found.map_err(|error| error.to_string())
    }

    async fn pull_token(&self, pod: &Arc<Pod>, uid: &str) -> Result<String, String> {
        let token = self
            .objects
            .service_account_token(pod, uid, "registry")
            .await;
        let token = token.map_err(|error| error.to_string())?;
        Ok(token.0.to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_account_is_read_each_time_and_never_watched() {
    let cluster = Cluster::new();
    let one = of_builder("one");
    cluster.objects.track(&one);
    // Caches of the API server may not know the pod yet: the first refusal is not taken for an answer.
    assert_eq!(cluster.account(&one).await.unwrap_err(), "not found");
    assert_eq!(cluster.api.asked(&format!("GET {PATH}")), 5);
    assert_eq!(cluster.account(&one).await.unwrap_err(), "not found");
    for uid in ["u1", "u2"] {
        put(&cluster, uid);
        assert_eq!(cluster.account(&one).await, Ok(account(uid)));
    }
    assert_eq!(cluster.api.asked(&format!("GET {PATH}")), 8);
    assert_eq!(cluster.api.asked("WATCH /api/v1/namespaces/default/s"), 0);
    // What an API server that answers says is true.
    cluster.api.set_mood(Mood::Forbids);
    let expected = "no relationship found between node and this object";
    assert_eq!(cluster.account(&one).await.unwrap_err(), expected);
    cluster.api.set_mood(Mood::Well);
    cluster.api.put(PATH, json!({}));
    let error = cluster.account(&one).await.unwrap_err();
    assert_eq!(error, "serviceaccounts \"builder\" has no UID");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_the_api_server_knows_a_moment_later_is_read() {
    let cluster = Cluster::new();
    let one = of_builder("one");
    cluster.objects.track(&one);
    put(&cluster, "u1");
    cluster.api.set_mood(Mood::Forbids);
    let knows = async {
        sleep(Duration::from_millis(200)).await;
        cluster.api.set_mood(Mood::Well);
    };
    let (found, ()) = tokio::join!(cluster.account(&one), knows);
    assert_eq!(found, Ok(account("u1")));
}

#[tokio::test(start_paused = true)]
async fn with_the_api_server_away_the_account_is_what_it_was() {
    let mut cluster = Cluster::new();
    put(&cluster, "u1");
    let (one, two) = (of_builder("one"), of_builder("two"));
    for pod in [&one, &two] {
        cluster.objects.track(pod);
    }
    assert_eq!(cluster.account(&one).await, Ok(account("u1")));
    assert_eq!(cluster.pull_token(&one, "u1").await.unwrap(), "token-1");
    for mood in [Mood::Away, Mood::Silent] {
        cluster.api.set_mood(mood);
        assert_eq!(cluster.account(&one).await, Ok(account("u1")));
        assert!(cluster.account(&two).await.is_err(), "it was never read");
    }
    // Also after a start of the agent.
    cluster.restart().await;
    cluster.objects.track(&one);
    assert_eq!(cluster.account(&one).await, Ok(account("u1")));
    assert_eq!(cluster.pull_token(&one, "u1").await.unwrap(), "token-1");
}

#[tokio::test(start_paused = true)]
async fn a_token_for_pulls_is_of_one_account_and_is_kept() {
    let cluster = Cluster::new();
    let one = of_builder("one");
    cluster.objects.track(&one);
    for _ in 0..2 {
        assert_eq!(cluster.pull_token(&one, "u1").await.unwrap(), "token-1");
    }
    let expected = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"uid": "u1"},
        "spec": {
            "audiences": ["registry"],
            "expirationSeconds": 3600,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": "one"},
        },
    });
    assert_eq!(cluster.api.token_request(), expected);
    // The account was deleted and made again.
    assert_eq!(cluster.pull_token(&one, "u2").await.unwrap(), "token-2");
    assert_eq!(cluster.pull_token(&one, "u1").await.unwrap(), "token-3");
    let path = format!("TOKEN {PATH}/token");
    assert_eq!(cluster.api.asked(&path), 3);
}

#[tokio::test(start_paused = true)]
async fn a_token_for_pulls_is_replaced_when_it_is_needed_and_not_before() {
    let cluster = Cluster::new();
    let one = of_builder("one");
    cluster.objects.track(&one);
    assert_eq!(cluster.pull_token(&one, "u1").await.unwrap(), "token-1");
    settle().await;
    sleep(seconds(7200)).await;
    // Volumes have nothing to do with it.
    assert_eq!(cluster.told(&one), 0);
    assert_eq!(cluster.api.asked("TOKEN"), 1);
    cluster.api.set_mood(Mood::Away);
    assert_eq!(cluster.pull_token(&one, "u1").await.unwrap(), "token-1");
    assert_eq!(cluster.objects.unconfirmed(&one.uid), [""; 0]);
    cluster.api.set_mood(Mood::Well);
    assert_eq!(cluster.pull_token(&one, "u1").await.unwrap(), "token-2");
}
