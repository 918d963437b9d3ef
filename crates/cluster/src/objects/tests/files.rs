//! What is kept on disk, and for how long.

use std::fs;

use rubelet_node_state::objects::ObjectSource;
use serde_json::json;
use tokio::time::sleep;

use super::cluster::{Cluster, pod, seconds, with_maps, with_variable};

/// Files but those of what all pods share.
fn files(cluster: &Cluster) -> Vec<String> {
    let entries = fs::read_dir(cluster.directory()).map(|entries| entries.flatten().collect());
    let entries: Vec<fs::DirEntry> = entries.unwrap_or_default();
    let names = entries.iter().map(|entry| entry.file_name());
    let mut kinds: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name != "services.json")
        .map(|name| name.split('-').next().unwrap_or_default().to_owned())
        .collect();
    kinds.sort();
    kinds
}

#[tokio::test(start_paused = true)]
async fn files_are_there_as_long_as_pods_use_what_is_in_them() {
    let cluster = Cluster::new();
    cluster.put_map("a", "1");
    cluster.put_map("b", "1");
    let (one, two) = (with_maps("one", &["a", "b"]), with_maps("two", &["b"]));
    cluster.objects.track(&one);
    cluster.objects.track(&two);
    sleep(seconds(1)).await;
    cluster.objects.flush().await;
    assert_eq!(files(&cluster), ["configmap", "configmap"]);
    cluster.objects.forget(&one.uid);
    cluster.objects.flush().await;
    assert_eq!(files(&cluster), ["configmap"]);
    cluster
        .api
        .delete("/api/v1/namespaces/default/configmaps/b");
    sleep(seconds(1)).await;
    cluster.objects.flush().await;
    assert_eq!(files(&cluster), [""; 0]);
    // A change is written, and what it takes the place of is gone.
    cluster.put_map("b", "of-a-later-time");
    sleep(seconds(1)).await;
    cluster.objects.flush().await;
    assert_eq!(files(&cluster), ["configmap"]);
    cluster.objects.forget(&two.uid);
    cluster.objects.flush().await;
    assert_eq!(files(&cluster), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_a_container_is_started_with_is_on_disk_before() {
    let cluster = Cluster::new();
    for map in ["a", "b"] {
        cluster.put_map(map, "1");
    }
    let (one, two) = (with_maps("one", &["a"]), with_variable("two", "b"));
    cluster.objects.track(&one);
    cluster.volumes(&one).await.unwrap();
    // The agent may be killed from here on.
    assert_eq!(files(&cluster), ["configmap"]);
    cluster.objects.track(&two);
    cluster.env(&two).await.unwrap();
    assert_eq!(files(&cluster), ["configmap", "configmap"]);
}

#[tokio::test(start_paused = true)]
async fn files_of_pods_that_went_while_the_agent_was_away_are_swept() {
    let mut cluster = Cluster::new();
    cluster.put_map("a", "1");
    cluster.put_map("b", "1");
    let token = json!({"volumes": [{"name": "t", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token"}},
    ]}}]});
    let (one, two) = (with_maps("one", &["a"]), with_maps("two", &["b"]));
    let three = pod("three", token, json!({}));
    for pod in [&one, &two, &three] {
        cluster.objects.track(pod);
        cluster.volumes(pod).await.unwrap();
    }
    cluster.restart().await;
    assert_eq!(files(&cluster), ["configmap", "configmap", "tokens"]);
    fs::write(cluster.directory().join("secret-1.json.corrupt-1"), "x").unwrap();
    cluster.objects.sweep(std::slice::from_ref(&two)).await;
    assert_eq!(files(&cluster), ["configmap"]);
    cluster.objects.track(&two);
    cluster.objects.sweep(&[]).await;
    assert_eq!(files(&cluster), ["configmap"]);
}
