//! Conditions, counts and addresses.

use rubelet_api::pod::RestartPolicy::*;

use super::build::*;

#[test]
fn conditions_follow_the_containers() {
    let pod = pod(Always, &["i"], &["a", "b"]);
    let mut node = Node::new();
    let status = node.plan(&pod, &seen(vec![], vec![]), 0).status;
    assert_eq!(
        conditions(&status),
        [
            "-PodReadyToStartContainers",
            "-Initialized ContainersNotInitialized containers with incomplete status: [i]",
            "-Ready ContainersNotReady containers with unready status: [a b]",
            "-ContainersReady ContainersNotReady containers with unready status: [a b]",
            "+PodScheduled",
        ]
    );
    let all = vec![
        found("i", 0, exited(0)),
        found("a", 0, running()),
        found("b", 0, running()),
    ];
    let status = node
        .plan(&pod, &seen(vec![sandbox(&pod, 0, true)], all), 50)
        .status;
    assert_eq!(
        conditions(&status),
        [
            "+PodReadyToStartContainers",
            "+Initialized",
            "+Ready",
            "+ContainersReady",
            "+PodScheduled"
        ]
    );
    assert_eq!(status.conditions[2].last_transition, at(50));
    assert_eq!(status.conditions[4].last_transition, at(0));
    assert_eq!(status.start_time, at(0));
    assert_eq!(status.pod_ips, ["10.0.0.2".into()]);
}

#[test]
fn a_completed_pod_says_so_in_its_conditions() {
    let pod = pod(Never, &[], &["a"]);
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![found("a", 0, exited(0))]);
    let status = Node::new().plan(&pod, &observed, 0).status;
    assert!(conditions(&status).contains(&"-Ready PodCompleted".to_owned()));
    assert!(conditions(&status).contains(&"+Initialized PodCompleted".to_owned()));
}

#[test]
fn a_pod_without_a_record_of_its_own_started_with_the_first_thing_in_the_runtime() {
    let pod = pod(Always, &[], &["a"]);
    let observed = seen(vec![sandbox(&pod, 3, true)], vec![found("a", 0, running())]);
    let mut node = Node::new();
    assert_eq!(node.plan(&pod, &observed, 500).status.start_time, at(3));
    assert_eq!(node.plan(&pod, &observed, 501).status.start_time, at(3));
}

#[test]
fn restart_counts_never_drop() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![found("a", 7, running())]);
    node.plan(&pod, &observed, 0);
    let status = node.plan(&pod, &seen(vec![], vec![]), 1).status;
    assert_eq!(status.containers[0].restart_count, 8);
    assert_eq!(
        status.containers[0].last_state.as_ref().unwrap().exit_code,
        137
    );
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![found("a", 0, running())]);
    let status = node.plan(&pod, &observed, 2).status;
    assert_eq!(status.containers[0].restart_count, 8);
}

#[test]
fn addresses_stay_while_no_sandbox_has_any() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    node.plan(&pod, &seen(vec![sandbox(&pod, 0, true)], vec![]), 0);
    let mut lost = sandbox(&pod, 0, false);
    lost.ips.clear();
    let status = node.plan(&pod, &seen(vec![lost], vec![]), 1).status;
    assert_eq!(status.pod_ips, ["10.0.0.2".into()]);
}
