//! What is watched, for how long, and who is notified.

use rubelet_node_state::objects::ObjectSource;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, pod, seconds, settle, value, with_maps, with_variable};

/// What is watched but services.
fn watched(cluster: &Cluster) -> Vec<String> {
    let all = cluster.objects.watched().into_iter();
    all.filter(|one| one != "services").collect()
}

#[tokio::test(start_paused = true)]
async fn each_object_that_pods_use_is_watched_once_and_as_long_as_they_do() {
    let cluster = Cluster::new();
    cluster.put_map("a", "1");
    cluster.put_map("b", "2");
    let (one, two) = (with_maps("one", &["a", "b"]), with_maps("two", &["b"]));
    cluster.objects.track(&one);
    cluster.objects.track(&two);
    cluster.objects.track(&two);
    settle().await;
    let expected = ["configmap default/a", "configmap default/b"];
    assert_eq!(watched(&cluster), expected);
    let single = "WATCH /api/v1/namespaces/default/configmaps metadata.name=b";
    assert_eq!(cluster.api.asked(single), 1);
    assert_eq!(cluster.api.asked("WATCH /api/v1/namespaces"), 2);

    let found = cluster.volumes(&one).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("1"));
    assert_eq!(value(&found, "b").as_deref(), Some("2"));

    cluster.objects.forget(&one.uid);
    assert_eq!(watched(&cluster), ["configmap default/b"]);
    // An edit.
    let mut edited = (*with_maps("two", &["a"])).clone();
    edited.uid = two.uid.clone();
    cluster.objects.track(&edited.into());
    assert_eq!(watched(&cluster), ["configmap default/a"]);
    cluster.objects.forget(&two.uid);
    assert_eq!(watched(&cluster), [""; 0]);
    assert_eq!(cluster.api.asked("GET"), 0);
}

#[tokio::test(start_paused = true)]
async fn pods_are_notified_of_changes_of_what_they_use_and_of_nothing_else() {
    let cluster = Cluster::new();
    cluster.put_map("a", "1");
    cluster.put_map("b", "1");
    let (one, two) = (with_maps("one", &["a"]), with_maps("two", &["b"]));
    for pod in [&one, &two] {
        cluster.objects.track(pod);
        cluster.volumes(pod).await.unwrap();
    }
    assert_eq!((cluster.told(&one), cluster.told(&two)), (0, 0));
    cluster.put_map("a", "2");
    settle().await;
    assert_eq!((cluster.told(&one), cluster.told(&two)), (1, 0));
    let found = cluster.volumes(&one).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("2"));
    // The same again is no change.
    cluster.put_map("a", "2");
    settle().await;
    assert_eq!(cluster.told(&one), 1);
    cluster
        .api
        .delete("/api/v1/namespaces/default/configmaps/a");
    settle().await;
    assert_eq!(cluster.told(&one), 2);
    let found = cluster.volumes(&one).await.unwrap();
    assert_eq!(value(&found, "a"), None);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_exist_is_absent_and_its_pod_is_notified_when_it_comes() {
    let cluster = Cluster::new();
    let one = with_maps("one", &["a"]);
    cluster.objects.track(&one);
    let found = cluster.volumes(&one).await.unwrap();
    assert_eq!(found.config_maps.len(), 0);
    cluster.put_map("a", "1");
    settle().await;
    assert_eq!(cluster.told(&one), 1);
    let found = cluster.volumes(&one).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_tracked_draws_nothing() {
    let cluster = Cluster::new();
    cluster.put_map("a", "1");
    let error = cluster
        .volumes(&with_maps("one", &["a"]))
        .await
        .unwrap_err();
    let expected = "MountVolume.SetUp failed for volume \"a\" : \
                    object \"default\"/\"a\" not registered";
    assert_eq!((error.reason, &*error.message), ("FailedMount", expected));
}

#[tokio::test(start_paused = true)]
async fn what_only_starts_need_is_watched_for_five_minutes_after_the_last_one() {
    let cluster = Cluster::new();
    cluster.put_map("a", "1");
    cluster.put_map("b", "1");
    let (one, two) = (with_variable("one", "a"), with_maps("two", &["b"]));
    cluster.objects.track(&one);
    cluster.objects.track(&two);
    sleep(seconds(200)).await;
    cluster.env(&one).await.unwrap();
    sleep(seconds(295)).await;
    assert_eq!(watched(&cluster).len(), 2);
    sleep(seconds(10)).await;
    assert_eq!(watched(&cluster), ["configmap default/b"]);

    // The next start reads what is there then.
    cluster.put_map("a", "2");
    let found = cluster.env(&one).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("2"));
    assert_eq!(watched(&cluster).len(), 2);
    sleep(seconds(24 * 3600)).await;
    assert_eq!(watched(&cluster), ["configmap default/b"]);
}

#[tokio::test(start_paused = true)]
async fn what_never_changes_is_read_once() {
    let cluster = Cluster::new();
    let path = "/api/v1/namespaces/default/secrets/s";
    let content = json!({"immutable": true, "data": {"k": "MQ=="}, "type": "Opaque"});
    cluster.api.put(path, content);
    let volumes = json!([{"name": "s", "secret": {"secretName": "s"}}]);
    let one = pod("one", json!({ "volumes": volumes }), json!({}));
    cluster.objects.track(&one);
    for _ in 0..3 {
        let found = cluster.volumes(&one).await.unwrap();
        assert_eq!(&*found.secrets["s"].data["k"], b"1");
        assert_eq!(watched(&cluster), [""; 0]);
        sleep(seconds(600)).await;
    }
    assert_eq!(cluster.api.asked("WATCH /api/v1/namespaces"), 1);
}

#[tokio::test(start_paused = true)]
async fn optional_and_projected_objects_and_those_of_all_containers_are_read() {
    let cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.put_map(name, name);
    }
    let projected = json!([{"name": "p", "projected": {"sources": [
        {"configMap": {"name": "a"}},
        {"configMap": {"name": "missing", "optional": true}},
        {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}]}},
    ]}}]);
    let init = json!([{
        "name": "i",
        "image": "app:1",
        "envFrom": [{"configMapRef": {"name": "b"}}],
    }]);
    let env = json!({"envFrom": [{"prefix": "P", "configMapRef": {"name": "c"}}]});
    let spec = json!({"volumes": projected, "initContainers": init});
    let one = pod("one", spec, env);
    cluster.objects.track(&one);
    let found = cluster.volumes(&one).await.unwrap();
    let names: Vec<&str> = found.config_maps.keys().map(|name| &**name).collect();
    assert_eq!(names, ["a"]);
    let found = cluster.env(&one).await.unwrap();
    let names: Vec<&str> = found.config_maps.keys().map(|name| &**name).collect();
    assert_eq!(names, ["c"]);
    let mut expected = ["a", "b", "c", "missing"].map(|name| format!("configmap default/{name}"));
    expected.sort();
    assert_eq!(watched(&cluster), expected);
}

#[tokio::test(start_paused = true)]
async fn runtime_classes_are_watched_from_the_first_use_on() {
    let cluster = Cluster::new();
    let path = "/apis/node.k8s.io/v1/runtimeclasses/safe";
    cluster.api.put(path, json!({"handler": "kata"}));
    let plain = with_maps("plain", &[]);
    cluster.objects.track(&plain);
    settle().await;
    assert_eq!(watched(&cluster), [""; 0]);
    let one = pod("one", json!({"runtimeClassName": "safe"}), json!({}));
    cluster.objects.track(&one);
    let began = Instant::now();
    assert_eq!(
        cluster.objects.runtime_handler("safe").await.unwrap(),
        "kata"
    );
    assert_eq!(began.elapsed(), seconds(0));
    let error = cluster.objects.runtime_handler("other").await.unwrap_err();
    let expected = "runtimeclass.node.k8s.io \"other\" not found";
    assert_eq!(
        (error.reason, &*error.message),
        ("FailedCreatePodSandBox", expected)
    );
    assert_eq!(watched(&cluster), ["runtimeclasses"]);
    cluster.objects.forget(&one.uid);
    sleep(seconds(400)).await;
    assert_eq!(watched(&cluster), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pull_secrets_give_credentials_and_those_that_are_missing_are_reported() {
    let cluster = Cluster::new();
    let content = json!({"auths": {"r.io": {"username": "u", "password": "hunter2"}}}).to_string();
    // Base64 of the content, as the API server has it.
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, content);
    let login = json!({
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": encoded},
    });
    cluster
        .api
        .put("/api/v1/namespaces/default/secrets/login", login);
    let broken = json!({
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": "aHVudGVyMg=="},
    });
    cluster
        .api
        .put("/api/v1/namespaces/default/secrets/broken", broken);
    let names = ["login", "gone", "", "broken"].map(|name| json!({ "name": name }));
    let one = pod("one", json!({ "imagePullSecrets": names }), json!({}));
    cluster.objects.track(&one);
    let (found, notes) = cluster.objects.pull_credentials(&one, "r.io/app:1").await;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].auth.username, &*found[0].auth.password),
        ("u", "hunter2")
    );
    let expected = "Unable to retrieve some image pull secrets (gone, broken); \
                    attempting to pull the image may not succeed.";
    let note = ("FailedToRetrieveImagePullSecret", expected.to_owned());
    assert_eq!(notes, [note]);
    let (found, _) = cluster.objects.pull_credentials(&one, "s.io/app:1").await;
    assert_eq!(found.len(), 0);
}
