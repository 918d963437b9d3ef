//! The services of which containers hear.

use std::sync::Arc;

use rubelet_api::pod::{Pod, PodSource};
use rubelet_node_state::objects::ObjectSource;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, Mood, pod, seconds, settle};

fn put(cluster: &Cluster, namespace: &str, name: &str, ip: &str) {
    let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
    let spec = json!({"clusterIP": ip, "ports": [{"port": 80}]});
    cluster.api.put(&path, json!({ "spec": spec }));
}

/// The services that the pod's container hears of, as `NAME=IP`.
async fn heard(cluster: &Cluster, pod: &Arc<Pod>) -> Vec<String> {
    let found = cluster.env(pod).await.unwrap();
    let hosts = found.services.iter().filter_map(|(name, value)| {
        let name = name.strip_suffix("_SERVICE_HOST")?;
        Some(format!("{name}={value}"))
    });
    hosts.collect()
}

fn with_links(name: &str, links: bool) -> Arc<Pod> {
    pod(name, json!({ "enableServiceLinks": links }), json!({}))
}

#[tokio::test(start_paused = true)]
async fn a_pod_hears_of_the_services_of_its_namespace_and_of_the_api_server() {
    let cluster = Cluster::new();
    put(&cluster, "default", "kubernetes", "10.0.0.1");
    put(&cluster, "default", "web", "10.0.0.2");
    put(&cluster, "default", "headless", "None");
    put(&cluster, "other", "web", "10.0.0.3");
    put(&cluster, "other", "zoo", "10.0.0.4");
    let one = with_links("one", true);
    let mut two = (*with_links("two", true)).clone();
    two.name = rubelet_base::PodName::new("other", "two");
    let (two, three) = (Arc::new(two), with_links("three", false));
    for pod in [&one, &two, &three] {
        cluster.objects.track(pod);
    }
    let expected = ["KUBERNETES=10.0.0.1", "WEB=10.0.0.2"];
    assert_eq!(heard(&cluster, &one).await, expected);
    let expected = ["KUBERNETES=10.0.0.1", "WEB=10.0.0.3", "ZOO=10.0.0.4"];
    assert_eq!(heard(&cluster, &two).await, expected);
    assert_eq!(heard(&cluster, &three).await, ["KUBERNETES=10.0.0.1"]);

    // One of the namespace's own is before the API server's.
    put(&cluster, "other", "kubernetes", "10.0.0.9");
    put(&cluster, "other", "zoo", "None");
    settle().await;
    let expected = ["KUBERNETES=10.0.0.9", "WEB=10.0.0.3"];
    assert_eq!(heard(&cluster, &two).await, expected);
}

#[tokio::test(start_paused = true)]
async fn all_services_are_watched_only_while_a_pod_wants_links() {
    let cluster = Cluster::new();
    put(&cluster, "default", "kubernetes", "10.0.0.1");
    let (none, links) = (with_links("none", false), with_links("links", true));
    cluster.objects.track(&none);
    assert_eq!(heard(&cluster, &none).await, ["KUBERNETES=10.0.0.1"]);
    assert_eq!(cluster.objects.watched(), ["service default/kubernetes"]);
    cluster.objects.track(&links);
    assert_eq!(heard(&cluster, &links).await, ["KUBERNETES=10.0.0.1"]);
    sleep(seconds(400)).await;
    assert_eq!(cluster.objects.watched(), ["services"]);
    cluster.objects.forget(&links.uid);
    sleep(seconds(400)).await;
    assert_eq!(heard(&cluster, &none).await, ["KUBERNETES=10.0.0.1"]);
    cluster.objects.forget(&none.uid);
    sleep(seconds(400)).await;
    assert_eq!(cluster.objects.watched(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_the_api_server_wait_until_services_were_read_once() {
    let cluster = Cluster::new();
    cluster.api.set_mood(Mood::Silent);
    put(&cluster, "default", "kubernetes", "10.0.0.1");
    let one = with_links("one", true);
    let mut fixed = (*with_links("fixed", true)).clone();
    fixed.source = PodSource::File;
    let fixed = Arc::new(fixed);
    cluster.objects.track(&one);
    cluster.objects.track(&fixed);
    let error = cluster.env(&one).await.unwrap_err();
    let expected = "services have not yet been read at least once, cannot construct envvars";
    assert_eq!(
        (error.reason, &*error.message),
        ("CreateContainerConfigError", expected)
    );
    // Others start without.
    let began = Instant::now();
    assert_eq!(heard(&cluster, &fixed).await, [""; 0]);
    assert_eq!(began.elapsed(), seconds(0));
    cluster.api.set_mood(Mood::Well);
    settle().await;
    assert_eq!(cluster.told(&one), 1);
    assert_eq!(heard(&cluster, &one).await, ["KUBERNETES=10.0.0.1"]);
    // WatchTask pods are not told of later changes: their variables are what they are.
    put(&cluster, "default", "web", "10.0.0.2");
    settle().await;
    assert_eq!(cluster.told(&one), 1);
}
