//! Metrics of a busy node.

use rubelet_sim::{Behavior, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

const WORKER: &str = "kubelet_pod_worker_duration_seconds_count";

/// The value of a line such as `name{label="value"}`; 0 where it is missing.
pub(super) fn value(node: &Node, line: &str) -> f64 {
    let text = node.metrics.render();
    let found = text.lines().find_map(|found| found.strip_prefix(line));
    found.map_or(0.0, |value| value.trim().parse().unwrap())
}

fn rounds(node: &Node, kind: &str) -> f64 {
    value(node, &format!("{WORKER}{{operation_type=\"{kind}\"}}"))
}

#[tokio::test(start_paused = true)]
async fn sync_rounds_are_counted_by_operation_type() {
    let node = Node::new();
    node.sim
        .on_container("init", Behavior::exits(seconds(3), 0));
    let spec =
        "initContainers: [{name: init, image: 'app:1'}], containers: [{name: a, image: 'app:1'}]";
    let uid = node.apply("web", spec);
    node.until_running().await;
    sleep(seconds(5)).await;
    assert_eq!(
        (rounds(&node, "create"), rounds(&node, "update")),
        (1.0, 0.0)
    );
    assert!(rounds(&node, "sync") >= 2.0);
    assert_eq!(
        value(&node, "kubelet_pod_start_duration_seconds_count"),
        1.0
    );
    let took = value(&node, "kubelet_pod_start_duration_seconds_sum");
    assert!((3.0..6.0).contains(&took), "{took}");
    assert_eq!(
        value(&node, "kubelet_pod_worker_start_duration_seconds_count"),
        1.0
    );

    node.apply(
        "web",
        &spec.replace("name: a, image: 'app:1'", "name: a, image: 'app:2'"),
    );
    sleep(seconds(5)).await;
    assert_eq!(
        (rounds(&node, "create"), rounds(&node, "update")),
        (1.0, 1.0)
    );
    // A restart of a container does not count as a start of the pod.
    assert_eq!(
        value(&node, "kubelet_pod_start_duration_seconds_count"),
        1.0
    );

    node.remove_manifest("web");
    node.until("the pod is gone", |node| node.is_gone(&uid))
        .await;
    sleep(seconds(5)).await;
    assert!(rounds(&node, "kill") >= 1.0);
    assert_eq!(rounds(&node, "terminated"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn an_adopted_pod_is_not_counted_as_started() {
    let mut node = Node::new();
    node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    node.until_running().await;
    // By now its record is on the disk.
    sleep(seconds(1)).await;
    node.restart().await;
    node.until_running().await;
    sleep(seconds(5)).await;
    assert_eq!(rounds(&node, "create"), 1.0);
    assert_eq!(
        value(&node, "kubelet_pod_start_duration_seconds_count"),
        0.0
    );
}

#[tokio::test(start_paused = true)]
async fn a_hung_list_shows_in_the_metrics_before_it_ends() {
    let node = Node::new();
    node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    node.until_running().await;
    sleep(seconds(5)).await;
    let duration = "kubelet_pleg_relist_duration_seconds_count";
    let age = "rubelet_pleg_relist_in_progress_seconds";
    let seen = "kubelet_pleg_last_seen_seconds";
    let hang = node.sim.hang("ListPodSandbox", Subject::any());
    node.agent().pleg().relist_now();
    node.until("a list hangs", |_| hang.held() > 0).await;
    sleep(seconds(1)).await;
    let (ended, last_seen) = (value(&node, duration), value(&node, seen));
    let first = value(&node, age);
    sleep(seconds(9)).await;
    let second = value(&node, age);
    assert!((9.0..=9.1).contains(&(second - first)), "{first} {second}");
    assert_eq!(value(&node, duration), ended);
    assert_eq!(value(&node, seen), last_seen);
    hang.release();
    sleep(seconds(2)).await;
    assert!(value(&node, age) < 1.0);
    assert!(value(&node, duration) > ended);
    assert!(value(&node, seen) > last_seen);
}

#[tokio::test(start_paused = true)]
async fn running_containers_and_inspections_are_counted() {
    let node = Node::new();
    let pod = |name: &str| node.apply(name, "containers: [{name: a, image: 'app:1'}]");
    let (one, _) = (pod("one"), pod("two"));
    node.until_running().await;
    sleep(seconds(5)).await;
    let running = "kubelet_running_containers{container_state=\"running\"}";
    assert_eq!(value(&node, "kubelet_running_pods"), 2.0);
    assert_eq!(value(&node, running), 2.0);
    let deaths = "rubelet_pleg_exit_to_delivery_seconds_count";
    let before = value(&node, deaths);
    node.kill_container(&one, "a", 1);
    sleep(seconds(5)).await;
    assert_eq!(value(&node, running), 2.0);
    assert_eq!(value(&node, deaths), before + 1.0);
    assert!(value(&node, "kubelet_pleg_pod_relist_duration_seconds_count") >= 4.0);
    assert_eq!(value(&node, "kubelet_pleg_discard_events"), 0.0);

    let hang = node
        .sim
        .hang("ContainerStatus", Subject::container(&one, "a"));
    node.kill_container(&one, "a", 1);
    let quarantined = "rubelet_pleg_quarantined_pods";
    node.until("the pod is in quarantine", |node| {
        value(node, quarantined) > 0.0
    })
    .await;
    drop(hang);
    node.until("the pod has left quarantine", |node| {
        value(node, quarantined) == 0.0
    })
    .await;
}

/// Names that dashboards and alerts for the kubelet use, and the PLEG metrics that only Rubelet
/// has. Metrics of calls to the runtime are tested in `metrics/tests.rs`.
#[tokio::test(start_paused = true)]
async fn every_pleg_metric_has_a_value_on_a_busy_node() {
    let node = Node::new();
    let uid = node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    node.until_running().await;
    sleep(seconds(20)).await;
    node.kill_container(&uid, "a", 1);
    sleep(seconds(20)).await;
    // An exit without an event, and a stream that breaks.
    node.sim.mute_events();
    node.kill_container(&uid, "a", 1);
    sleep(seconds(70)).await;
    node.sim.cut_events();
    sleep(seconds(5)).await;
    for name in [
        "kubelet_pleg_relist_duration_seconds_count",
        "kubelet_pleg_relist_interval_seconds_count",
        "kubelet_pleg_pod_relist_duration_seconds_count",
        "kubelet_pleg_last_seen_seconds",
        "kubelet_evented_pleg_connection_success_count",
        "kubelet_evented_pleg_connection_error_count",
        "kubelet_evented_pleg_connection_latency_seconds_count",
        "kubelet_running_pods",
        "kubelet_running_containers{container_state=\"running\"}",
        "kubelet_pod_start_duration_seconds_count",
        "kubelet_pod_worker_duration_seconds_count{operation_type=\"sync\"}",
        "rubelet_pleg_exit_to_delivery_seconds_count",
        "rubelet_pleg_event_to_sync_seconds_count",
        "rubelet_pleg_missed_changes_total{type=\"state\"}",
        "rubelet_pleg_inspections_total{cause=\"event\"}",
        "rubelet_pleg_events_total{type=\"STOPPED\"}",
    ] {
        let value = value(&node, &format!("{name} "));
        assert!(value > 0.0, "{name} is {value}\n{}", node.metrics.render());
    }
    for name in [
        "kubelet_pleg_discard_events",
        "rubelet_pleg_quarantined_pods",
        "rubelet_pleg_relist_in_progress_seconds",
        "rubelet_pleg_inspection_in_progress_seconds",
    ] {
        let line = format!("\n{name} 0\n");
        assert!(node.metrics.render().contains(&line), "{name}");
    }
}
