//! The two ways of finding changes that need no watch.

use rubelet_node_state::objects::ObjectSource;
use tokio::time::sleep;

use super::cluster::{Cluster, Mood, seconds, value, with_maps, with_variable};
use crate::objects::ChangeDetection;

#[tokio::test(start_paused = true)]
async fn cached_objects_count_for_a_minute() {
    let cluster = Cluster::with(ChangeDetection::Cache);
    cluster.put_map("a", "1");
    let one = with_maps("one", &["a"]);
    cluster.objects.track(&one);
    for _ in 0..3 {
        let found = cluster.volumes(&one).await.unwrap();
        assert_eq!(value(&found, "a").as_deref(), Some("1"));
    }
    assert_eq!(cluster.api.asked("GET"), 1);
    assert_eq!(cluster.api.asked("WATCH /api/v1/namespaces"), 0);
    cluster.put_map("a", "2");
    sleep(seconds(61)).await;
    assert_eq!(cluster.told(&one), 1);
    let found = cluster.volumes(&one).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("2"));

    // What can't be read again is used as it was.
    for mood in [Mood::Away, Mood::Forbids] {
        cluster.api.set_mood(mood);
        sleep(seconds(61)).await;
        let found = cluster.volumes(&one).await.unwrap();
        assert_eq!(value(&found, "a").as_deref(), Some("2"));
    }
    // A new pod reads it again.
    cluster.api.set_mood(Mood::Well);
    cluster.put_map("a", "3");
    let two = with_maps("two", &["a"]);
    cluster.objects.track(&two);
    let found = cluster.volumes(&two).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("3"));
}

#[tokio::test(start_paused = true)]
async fn objects_may_be_read_each_time() {
    let cluster = Cluster::with(ChangeDetection::Get);
    cluster.put_map("a", "1");
    let one = with_variable("one", "a");
    cluster.objects.track(&one);
    for new in ["2", "3"] {
        cluster.env(&one).await.unwrap();
        cluster.put_map("a", new);
        let found = cluster.env(&one).await.unwrap();
        assert_eq!(value(&found, "a").as_deref(), Some(new));
    }
    assert_eq!(cluster.api.asked("GET"), 4);
    cluster.api.set_mood(Mood::Forbids);
    let error = cluster.env(&one).await.unwrap_err();
    let expected = "no relationship found between node and this object";
    assert_eq!(error.message, expected);
    cluster.api.set_mood(Mood::Away);
    let found = cluster.env(&one).await.unwrap();
    assert_eq!(value(&found, "a").as_deref(), Some("3"));
    // Environment variables do not change: no pod is notified.
    sleep(seconds(600)).await;
    assert_eq!(cluster.told(&one), 0);
}
