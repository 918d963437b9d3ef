//! Service account tokens.

use std::sync::Arc;

use rubelet_api::pod::Pod;
use rubelet_node_state::objects::ObjectSource;
use serde_json::json;
use tokio::time::sleep;

use super::cluster::{Cluster, Mood, pod, seconds, settle};

fn with_token(name: &str, expiration: u64) -> Arc<Pod> {
    let token = json!({"serviceAccountToken": {
        "path": "token",
        "audience": "vault",
        "expirationSeconds": expiration,
    }});
    let volumes = json!([{"name": "t", "projected": {"sources": [token]}}]);
    let spec = json!({"serviceAccountName": "builder", "volumes": volumes});
    pod(name, spec, json!({}))
}

async fn token(cluster: &Cluster, pod: &Arc<Pod>) -> String {
    let found = cluster.volumes(pod).await.unwrap();
    found.tokens[&("t".into(), "token".into())].0.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_token_is_bound_to_its_pod_and_asked_for_once() {
    let cluster = Cluster::new();
    let one = with_token("one", 3600);
    cluster.objects.track(&one);
    for _ in 0..3 {
        assert_eq!(token(&cluster, &one).await, "token-1");
    }
    let path = "TOKEN /api/v1/namespaces/default/serviceaccounts/builder/token";
    assert_eq!(cluster.api.asked(path), 1);
    let expected = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "audiences": ["vault"],
            "expirationSeconds": 3600,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": "one"},
        },
    });
    assert_eq!(cluster.api.token_request(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_replaced_after_four_fifths_of_its_life() {
    let cluster = Cluster::new();
    let (one, day) = (with_token("one", 3600), with_token("day", 7 * 24 * 3600));
    for pod in [&one, &day] {
        cluster.objects.track(pod);
        token(&cluster, pod).await;
    }
    sleep(seconds(2860)).await;
    assert_eq!(cluster.told(&one), 0);
    sleep(seconds(21)).await;
    assert_eq!(cluster.told(&one), 1);
    assert_eq!(token(&cluster, &one).await, "token-3");
    assert_eq!(cluster.told(&day), 0);
    sleep(seconds(24 * 3600 - 2881)).await;
    assert_eq!(cluster.told(&day), 1);
    // Nobody asks for the tokens of a pod that is gone.
    cluster.objects.forget(&one.uid);
    let asked = cluster.api.asked("TOKEN");
    sleep(seconds(24 * 3600)).await;
    assert_eq!(cluster.api.asked("TOKEN"), asked);
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_ten_minutes_apart_cost_no_token() {
    for minutes in [-10, 10] {
        let cluster = Cluster::new();
        cluster
            .api
            .set_skew(jiff::SignedDuration::from_mins(minutes));
        // As short as the API server grants them.
        let one = with_token("one", 600);
        cluster.objects.track(&one);
        let mut last = (token(&cluster, &one).await, 0);
        for second in 0..7200 {
            sleep(seconds(1)).await;
            let now = token(&cluster, &one).await;
            if now != last.0 {
                last = (now, second);
            }
            // It was made then, and is valid for ten minutes by whatever clock.
            assert!(second - last.1 < 600, "{minutes} min: at {second} s");
        }
        let asked = cluster.api.asked("TOKEN");
        assert!((12..=26).contains(&asked), "{minutes} min: {asked} tokens");
        // Whoever looks when told, and not before, fares no worse.
        assert!(cluster.told(&one) >= 12);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_cannot_be_replaced_is_used_to_its_end_and_tried_again() {
    let cluster = Cluster::new();
    let one = with_token("one", 3600);
    cluster.objects.track(&one);
    token(&cluster, &one).await;
    cluster.api.set_mood(Mood::Forbids);
    sleep(seconds(2900)).await;
    assert_eq!(cluster.told(&one), 1);
    assert_eq!(token(&cluster, &one).await, "token-1");
    sleep(seconds(121)).await;
    assert!(
        (2..=4).contains(&cluster.told(&one)),
        "{}",
        cluster.told(&one)
    );
    sleep(seconds(600)).await;
    let error = cluster.volumes(&one).await.unwrap_err();
    let expected = "MountVolume.SetUp failed for volume \"t\" : \
                    token \"builder\"/\"default\"/\"vault\"/3600 expired and refresh failed: \
                    no relationship found between node and this object";
    assert_eq!(error.message, expected);
    cluster.api.set_mood(Mood::Well);
    assert_eq!(token(&cluster, &one).await, "token-2");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_never_had_holds_up_its_pod() {
    let cluster = Cluster::new();
    cluster.api.set_mood(Mood::Away);
    let one = with_token("one", 3600);
    cluster.objects.track(&one);
    let error = cluster.volumes(&one).await.unwrap_err();
    let expected = "MountVolume.SetUp failed for volume \"t\" : \
                    failed to fetch token: the request to the API server timed out";
    assert_eq!(error.message, expected);
}

#[tokio::test(start_paused = true)]
async fn a_token_outlives_the_agent() {
    let mut cluster = Cluster::new();
    let one = with_token("one", 3600);
    cluster.objects.track(&one);
    assert_eq!(token(&cluster, &one).await, "token-1");
    cluster.restart().await;
    cluster.objects.track(&one);
    assert_eq!(token(&cluster, &one).await, "token-1");
    assert_eq!(cluster.api.asked("TOKEN"), 1);
    settle().await;
    sleep(seconds(2900)).await;
    assert_eq!(cluster.told(&one), 1);
    assert_eq!(token(&cluster, &one).await, "token-2");
}
