//! Lifecycle events, and the numbers of the node.

use std::time::Duration;

use rubelet_base::PodName;
use rubelet_cri::v1::ContainerEventType;
use rubelet_pleg::{InspectionCause, LifecycleEvent, LifecycleKind};
use rubelet_server::{NodeView as _, Resource, WatchKind};
use serde_json::{Value, json};

use super::fixture::{NOW, TestView, at};

fn event(number: u64, pod: Option<PodName>) -> LifecycleEvent {
    LifecycleEvent {
        number,
        at: at("2026-03-01T12:00:00.0012345Z"),
        uid: "u1".into(),
        pod,
        kind: LifecycleKind::Died,
        container: Some("web".into()),
        id: "c0ffee".into(),
        cause: InspectionCause::Event(ContainerEventType::ContainerStoppedEvent),
        from_stamp: Some(Duration::from_millis(4)),
        from_event: Some(Duration::from_millis(1)),
        to_start: None,
        to_sync: None,
    }
}

fn shown(seen: &TestView) -> Vec<Value> {
    let items = seen.view.list(Resource::LifecycleEvents).items;
    let json = items
        .iter()
        .map(|one| one.to_json(Resource::LifecycleEvents));
    json.collect()
}

#[tokio::test]
async fn what_happened_before_anybody_asked_is_there() {
    let seen = TestView::new();
    let name = PodName::new("kube-system", "web-n1");
    seen.lifecycle.set(1, event(1, Some(name)));
    let mut orphan = event(2, None);
    (orphan.container, orphan.from_stamp, orphan.from_event) = (None, None, None);
    (orphan.kind, orphan.cause) = (LifecycleKind::Removed, InspectionCause::Relist);
    seen.lifecycle.set(2, orphan);
    let mut events = shown(&seen);
    for event in &mut events {
        event["metadata"]["resourceVersion"] = Value::Null;
    }
    let expected = json!([
        {
            "apiVersion": "node.rubelet.dev/v1alpha1",
            "kind": "PodLifecycleEvent",
            "metadata": {
                "name": "000000000002",
                "namespace": "default",
                "creationTimestamp": NOW,
                "resourceVersion": null,
            },
            "time": "2026-03-01T12:00:00.001234Z",
            "pod": { "uid": "u1" },
            "type": "ContainerRemoved",
            "cause": "relist",
            "id": "c0ffee",
        },
        {
            "apiVersion": "node.rubelet.dev/v1alpha1",
            "kind": "PodLifecycleEvent",
            "metadata": {
                "name": "000000000001",
                "namespace": "kube-system",
                "creationTimestamp": NOW,
                "resourceVersion": null,
            },
            "time": "2026-03-01T12:00:00.001234Z",
            "pod": { "uid": "u1", "name": "web-n1" },
            "type": "ContainerDied",
            "cause": "event STOPPED",
            "container": "web",
            "id": "c0ffee",
            "afterChangeSeconds": 0.004,
            "afterEventSeconds": 0.001,
        },
    ]);
    assert_eq!(Value::from(events), expected);
}

#[tokio::test]
async fn the_end_of_the_work_is_reported_to_watchers() {
    use futures_util::StreamExt as _;

    let seen = TestView::new();
    let since = seen.view.list(Resource::LifecycleEvents).resource_version;
    let mut watch = seen.view.watch(Resource::LifecycleEvents, since).unwrap();
    seen.lifecycle.set(1, event(1, None));
    let added = watch.next().await.unwrap().unwrap();
    assert_eq!(added.kind, WatchKind::Added);
    let synced = LifecycleEvent {
        to_start: Some(Duration::from_millis(2)),
        to_sync: Some(Duration::from_millis(250)),
        ..event(1, None)
    };
    seen.lifecycle.set(1, synced);
    let changed = watch.next().await.unwrap().unwrap();
    let json = changed.object.to_json(Resource::LifecycleEvents);
    assert_eq!(
        (
            changed.kind,
            &json["toStartSeconds"],
            &json["toSyncSeconds"]
        ),
        (WatchKind::Modified, &json!(0.002), &json!(0.25))
    );
    seen.lifecycle.remove(&1);
    let gone = watch.next().await.unwrap().unwrap();
    assert_eq!(gone.kind, WatchKind::Deleted);
}

#[test]
fn a_metric_that_is_counted_is_shown() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let text = runtime.block_on(async { TestView::new().view.metrics() });
    assert!(text.contains("\nkubelet_pleg_discard_events 0\n"), "{text}");
}
