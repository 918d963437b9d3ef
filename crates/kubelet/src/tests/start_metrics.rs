//! Metrics of starts and ends, and of how many pods there are.

use rubelet_cri::CriErrorKind;
use rubelet_sim::Behavior;
use tokio::time::sleep;

use super::{
    metrics::value,
    node::{Node, seconds},
};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

/// Asserts the values of these lines.
#[track_caller]
fn assert_values(node: &Node, expected: &[(&str, f64)]) {
    for (line, expected) in expected {
        let found = value(node, &format!("{line} "));
        let text = node.metrics.render();
        assert!(
            (found - expected).abs() < 1e-9,
            "{line} is {found}, not {expected}\n{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn starts_and_ends_of_containers_are_counted_by_their_type() {
    let node = Node::new();
    node.sim
        .on_container("init", Behavior::exits(seconds(3), 0));
    node.sim.on_container("job", Behavior::exits(seconds(5), 3));
    node.apply(
        "web",
        "restartPolicy: Never, hostUsers: true, initContainers: [{name: init, image: 'app:1'}], \
         containers: [{name: a, image: 'app:1'}, {name: job, image: 'app:1'}]",
    );
    node.until_running().await;
    sleep(seconds(20)).await;
    let started = "kubelet_started_containers_total{container_type=";
    assert_values(
        &node,
        &[
            (&format!("{started}\"container\"}}"), 2.0),
            (&format!("{started}\"init_container\"}}"), 1.0),
            (&format!("{started}\"ephemeral_container\"}}"), 0.0),
            (
                "kubelet_terminated_containers_total{container_type=\"init_container\",\
                 exit_code=\"0\",reason=\"Completed\"}",
                1.0,
            ),
            (
                "kubelet_terminated_containers_total{container_type=\"container\",exit_code=\"3\",\
                 reason=\"Error\"}",
                1.0,
            ),
            ("kubelet_started_pods_total", 1.0),
            ("kubelet_started_pods_errors_total", 0.0),
            ("kubelet_started_user_namespaced_pods_total", 0.0),
            ("kubelet_containers_per_pod_count_sum", 2.0),
            ("kubelet_containers_per_pod_count_count", 1.0),
            (
                "kubelet_run_podsandbox_duration_seconds_count{runtime_handler=\"\"}",
                1.0,
            ),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_container_that_restarts_is_counted_each_time() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    for _ in 0..2 {
        node.kill_container(&uid, "app", 1);
        sleep(seconds(60)).await;
        node.until_running().await;
    }
    assert_values(
        &node,
        &[
            (
                "kubelet_started_containers_total{container_type=\"container\"}",
                3.0,
            ),
            (
                "kubelet_terminated_containers_total{container_type=\"container\",exit_code=\"1\",\
                 reason=\"Error\"}",
                2.0,
            ),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn starts_that_fail_are_counted_by_their_reason() {
    let node = Node::new();
    node.sim
        .fail_next("RunPodSandbox", CriErrorKind::Unavailable, false);
    node.sim
        .fail_next("CreateContainer", CriErrorKind::Unavailable, false);
    node.apply("web", APP);
    node.until_running().await;
    sleep(seconds(20)).await;
    assert_values(
        &node,
        &[
            ("kubelet_started_pods_total", 2.0),
            ("kubelet_started_pods_errors_total", 1.0),
            (
                "kubelet_run_podsandbox_duration_seconds_count{runtime_handler=\"\"}",
                2.0,
            ),
            (
                "kubelet_run_podsandbox_errors_total{runtime_handler=\"\"}",
                1.0,
            ),
            (
                "kubelet_started_containers_total{container_type=\"container\"}",
                2.0,
            ),
            (
                "kubelet_started_containers_errors_total{code=\"CreateContainerError\",\
                 container_type=\"container\"}",
                1.0,
            ),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn pods_and_volumes_are_counted_until_they_are_gone() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let uid = node.apply(
        "web",
        &format!(
            "terminationGracePeriodSeconds: 20, {APP}, \
             volumes: [{{name: a, emptyDir: {{}}}}, {{name: b, hostPath: {{path: /tmp}}}}, \
             {{name: c, emptyDir: {{}}}}, {{name: d, image: {{reference: 'tools:1'}}}}]"
        ),
    );
    node.apply("other", APP);
    node.until_running().await;
    let working = |stage: &str, config: &str, is_static: &str| {
        format!(
            "kubelet_working_pods{{config=\"{config}\",lifecycle=\"{stage}\",static=\"{is_static}\"}}"
        )
    };
    let volumes = |plugin: &str, state: &str| {
        format!(
            "volume_manager_total_volumes{{plugin_name=\"kubernetes.io/{plugin}\",state=\"{state}_state_of_world\"}}"
        )
    };
    let ready = |plugin: &str| {
        format!(
            "volume_operation_total_seconds_count{{operation_name=\"overall_volume_mount\",\
             plugin_name=\"kubernetes.io/{plugin}\"}}"
        )
    };
    assert_values(
        &node,
        &[
            ("kubelet_desired_pods{static=\"true\"}", 2.0),
            ("kubelet_desired_pods{static=\"\"}", 0.0),
            ("kubelet_active_pods{static=\"true\"}", 2.0),
            ("kubelet_mirror_pods", 0.0),
            (&working("sync", "desired", "true"), 2.0),
            (&volumes("empty-dir", "desired"), 2.0),
            (&volumes("empty-dir", "actual"), 2.0),
            (&volumes("host-path", "actual"), 1.0),
            (&ready("empty-dir"), 2.0),
        ],
    );
    // The runtime mounts it.
    let text = node.metrics.render();
    assert!(!text.contains(&ready("image")), "{text}");
    node.remove_manifest("web");
    let ending = format!("{} 1\n", working("terminating", "orphan", "true"));
    node.until("web ends", |node| node.metrics.render().contains(&ending))
        .await;
    assert_values(
        &node,
        &[
            ("kubelet_desired_pods{static=\"true\"}", 1.0),
            ("kubelet_active_pods{static=\"true\"}", 1.0),
            (&working("sync", "desired", "true"), 1.0),
            (&working("terminating", "orphan", "true"), 1.0),
            (&volumes("empty-dir", "actual"), 2.0),
        ],
    );
    let text = node.metrics.render();
    assert!(!text.contains(&volumes("empty-dir", "desired")), "{text}");
    node.until("web is gone", |node| node.is_gone(&uid)).await;
    node.until("its task is over", |node| {
        !node.metrics.render().contains(&ending)
    })
    .await;
    let text = node.metrics.render();
    assert!(!text.contains("volume_manager_total_volumes{"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_back_while_it_ends_is_counted_as_restarted() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let spec = format!("terminationGracePeriodSeconds: 20, {APP}");
    node.apply("web", &spec);
    node.until_running().await;
    node.remove_manifest("web");
    sleep(seconds(5)).await;
    node.apply("web", &spec);
    sleep(seconds(60)).await;
    node.until_running().await;
    assert_values(
        &node,
        &[
            ("kubelet_restarted_pods_total{static=\"true\"}", 1.0),
            ("kubelet_restarted_pods_total{static=\"\"}", 0.0),
            ("kubelet_orphaned_runtime_pods_total", 0.0),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_source_has_named_is_an_orphan_of_the_runtime() {
    let mut node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    node.apply("web", &format!("terminationGracePeriodSeconds: 30, {APP}"));
    node.until_running().await;
    node.kill().await;
    node.remove_manifest("web");
    node.start();
    sleep(seconds(12)).await;
    assert_values(
        &node,
        &[
            ("kubelet_orphaned_runtime_pods_total", 1.0),
            (
                "kubelet_working_pods{config=\"runtime_only\",lifecycle=\"terminating\",\
                 static=\"unknown\"}",
                1.0,
            ),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_sleep_that_its_pod_does_not_wait_for_is_counted_as_interrupted() {
    let node = Node::new();
    let hook = "lifecycle: {postStart: {sleep: {seconds: 30}}}";
    let uid = node.apply(
        "web",
        &format!("containers: [{{name: app, image: 'app:1', {hook}}}]"),
    );
    node.until("the container runs", |node| {
        node.sim.running(&uid, "app").is_some()
    })
    .await;
    sleep(seconds(5)).await;
    let interrupted = "kubelet_sleep_action_terminated_early_total";
    assert_values(&node, &[(interrupted, 0.0)]);
    node.remove_manifest("web");
    node.until("web is gone", |node| node.is_gone(&uid)).await;
    assert_values(&node, &[(interrupted, 1.0)]);
}
