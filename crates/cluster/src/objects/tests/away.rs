//! The API server is away, slow, or refuses.

use std::{fs, os::unix::fs::PermissionsExt};

use rubelet_node_state::objects::ObjectSource;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, Mood, pod, seconds, settle, value, with_maps, with_variable};

const NOT_READ: &str = "MountVolume.SetUp failed for volume \"a\" : \
                        failed to sync configmap cache: timed out waiting for the condition";

#[tokio::test(start_paused = true)]
async fn without_an_answer_a_pod_waits_a_second_and_is_notified_when_there_is_one() {
    let cluster = Cluster::new();
    for mood in [Mood::Away, Mood::Silent, Mood::Forbids] {
        cluster.api.set_mood(mood);
        let one = with_maps("one", &["a"]);
        cluster.objects.track(&one);
        let began = Instant::now();
        let error = cluster.volumes(&one).await.unwrap_err();
        assert_eq!(error.message, NOT_READ);
        assert_eq!(began.elapsed(), seconds(1));
        let before = cluster.told(&one);
        cluster.put_map("a", "1");
        cluster.api.set_mood(Mood::Well);
        settle().await;
        assert_eq!(cluster.told(&one), before + 1);
        let found = cluster.volumes(&one).await.unwrap();
        assert_eq!(value(&found, "a").as_deref(), Some("1"));
        // The next one knows nothing of it: it is not on disk any more either.
        cluster.objects.forget(&one.uid);
        cluster.objects.flush().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_needs_an_object_is_held_up_in_the_same_way() {
    let cluster = Cluster::new();
    let one = with_variable("one", "a");
    cluster.objects.track(&one);
    settle().await;
    cluster.api.set_mood(Mood::Away);
    let two = with_variable("two", "b");
    cluster.objects.track(&two);
    let error = cluster.env(&two).await.unwrap_err();
    let expected = "failed to sync configmap cache: timed out waiting for the condition";
    assert_eq!(
        (error.reason, &*error.message),
        ("CreateContainerConfigError", expected)
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_used_as_long_as_the_api_server_is_away() {
    let cluster = Cluster::new();
    cluster.put_map("a", "1");
    let (one, two) = (with_maps("one", &["a"]), with_variable("two", "a"));
    cluster.objects.track(&one);
    cluster.volumes(&one).await.unwrap();
    cluster.api.set_mood(Mood::Away);
    sleep(seconds(24 * 3600)).await;
    // Also by a pod that comes later.
    cluster.objects.track(&two);
    for found in [cluster.volumes(&one).await, cluster.env(&two).await] {
        assert_eq!(value(&found.unwrap(), "a").as_deref(), Some("1"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_watched_any_more_is_used_when_the_api_server_is_away() {
    let cluster = Cluster::new();
    cluster.put_map("a", "1");
    let one = with_variable("one", "a");
    cluster.objects.track(&one);
    cluster.env(&one).await.unwrap();
    sleep(seconds(400)).await;
    cluster.api.set_mood(Mood::Away);
    let found = cluster.env(&one).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("1"));
    assert_eq!(cluster.objects.unconfirmed(&one.uid), ["configmap \"a\""]);
    cluster.put_map("a", "2");
    cluster.api.set_mood(Mood::Well);
    settle().await;
    assert_eq!(cluster.objects.unconfirmed(&one.uid), [""; 0]);
    assert_eq!(cluster.told(&one), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_reboot_without_api_server_pods_start_with_what_is_on_disk() {
    let mut cluster = Cluster::new();
    cluster.put_map("a", "1");
    let path = "/api/v1/namespaces/default/secrets/s";
    let secret = json!({"type": "Opaque", "data": {"k": "AP/+"}});
    cluster.api.put(path, secret);
    cluster.api.put(
        "/apis/node.k8s.io/v1/runtimeclasses/safe",
        json!({"handler": "kata"}),
    );
    cluster.api.put(
        "/api/v1/namespaces/default/services/kubernetes",
        json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 443}]}}),
    );
    let spec = json!({
        "runtimeClassName": "safe",
        "serviceAccountName": "builder",
        "volumes": [
            {"name": "a", "configMap": {"name": "a"}},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "t", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
            ]}},
        ],
    });
    let one = pod("one", spec, json!({}));
    cluster.objects.track(&one);
    cluster.volumes(&one).await.unwrap();
    cluster.env(&one).await.unwrap();
    cluster.objects.runtime_handler("safe").await.unwrap();
    settle().await;

    for mood in [Mood::Away, Mood::Silent] {
        cluster.api.set_mood(mood);
        sleep(seconds(3 * 3600)).await;
        cluster.restart().await;
        cluster.objects.track(&one);
        let began = Instant::now();
        let found = cluster.volumes(&one).await.unwrap();
        assert!(began.elapsed() < seconds(10), "{:?}", began.elapsed());
        assert_eq!(value(&found, "a").as_deref(), Some("1"));
        assert_eq!(&*found.secrets["s"].data["k"], [0, 255, 254]);
        assert_eq!(&*found.secrets["s"].kind, "Opaque");
        let key = ("t".into(), "token".into());
        assert_eq!(&*found.tokens[&key].0, "token-1");
        let env = cluster.env(&one).await.unwrap();
        let host = ("KUBERNETES_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned());
        assert!(env.services.contains(&host), "{:?}", env.services);
        assert_eq!(
            cluster.objects.runtime_handler("safe").await.unwrap(),
            "kata"
        );
        let unconfirmed = cluster.objects.unconfirmed(&one.uid);
        let expected = [
            "configmap \"a\"",
            "secret \"s\"",
            "token of service account \"builder\"",
        ];
        assert_eq!(unconfirmed, expected);
    }
    // It comes back, with a change.
    cluster.put_map("a", "2");
    cluster.api.set_mood(Mood::Well);
    settle().await;
    assert!(cluster.told(&one) >= 1);
    let found = cluster.volumes(&one).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("2"));
    assert_eq!(&*found.tokens[&("t".into(), "token".into())].0, "token-2");
    assert_eq!(cluster.objects.unconfirmed(&one.uid), [""; 0]);

    let directory = cluster.directory();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&directory), 0o700);
    // Until then there are also those that a power cut would leave.
    rubelet_store::wait_for_flush();
    let files: Vec<_> = fs::read_dir(&directory).unwrap().flatten().collect();
    assert_eq!(files.len(), 5);
    for file in files {
        assert_eq!(mode(&file.path()), 0o600);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_on_disk_is_no_answer_where_the_api_server_refuses() {
    let mut cluster = Cluster::new();
    cluster.put_map("a", "1");
    let one = with_maps("one", &["a"]);
    cluster.objects.track(&one);
    cluster.volumes(&one).await.unwrap();
    cluster.api.set_mood(Mood::Forbids);
    cluster.restart().await;
    cluster.objects.track(&one);
    let error = cluster.volumes(&one).await.unwrap_err();
    assert_eq!(error.message, NOT_READ);
}
