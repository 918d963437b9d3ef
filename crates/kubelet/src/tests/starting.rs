//! Pods that start, and the calls of an idle node afterwards.

use std::collections::BTreeMap;

use rubelet_api::status::Phase;
use rubelet_sim::Behavior;
use tokio::time::sleep;

use super::node::{Node, seconds};

#[tokio::test(start_paused = true)]
async fn a_pod_starts_and_then_the_runtime_is_left_alone() {
    let node = Node::new();
    let uid = node.apply("web", "containers: [{name: app, image: 'app:1'}]");
    let took = node.until_running().await;
    assert!(took < seconds(1), "{took:?}");

    let oracle = node.sim.oracle();
    assert_eq!(node.calls("RunPodSandbox"), 1);
    assert_eq!(node.calls("CreateContainer"), 1);
    assert_eq!(oracle.starts(&uid, "app"), 1);
    let events = node.events("web");
    let expected = [
        "Pulled Container image \"app:1\" already present on machine",
        "Created Container created",
        "Started Container started",
    ];
    assert_eq!(events, expected);

    // About one relist each minute, and the status call.
    sleep(seconds(10)).await;
    let counts = calls_in_ten_minutes(&node).await;
    assert_eq!(counts["Status"], 120);
    let lists = counts["ListContainers"];
    assert!((9..=11).contains(&lists), "{counts:?}");
    assert_eq!(counts["ListPodSandbox"], lists);
    assert_eq!(counts.len(), 3, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn without_events_only_a_relist_each_second_calls_the_runtime() {
    let mut node = Node::new();
    node.stop().await;
    node.events = false;
    node.start();
    node.apply("web", "containers: [{name: app, image: 'app:1'}]");
    node.until_running().await;
    sleep(seconds(10)).await;
    let expected = [
        ("ListContainers", 600),
        ("ListPodSandbox", 600),
        ("Status", 120),
    ];
    assert_eq!(calls_in_ten_minutes(&node).await, expected.into());
}

async fn calls_in_ten_minutes(node: &Node) -> BTreeMap<&'static str, usize> {
    let mark = node.sim.oracle().mark();
    sleep(seconds(600)).await;
    let mut counts = BTreeMap::new();
    for call in node.sim.oracle().calls_since(mark) {
        *counts.entry(call.call).or_insert(0) += 1;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_in_order_and_before_the_others() {
    let node = Node::new();
    for init in ["one", "two", "three"] {
        node.sim.on_container(init, Behavior::exits(seconds(7), 0));
    }
    let spec = "initContainers: [{name: one, image: 'app:1'}, {name: two, image: 'app:1'}, \
                {name: three, image: 'app:1'}], \
                containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:2'}]";
    let uid = node.apply("web", spec);
    sleep(seconds(2)).await;
    assert_eq!(node.phase("web"), Some(Phase::Pending));
    assert_eq!(node.state("web", "one"), "Running");
    assert_eq!(node.state("web", "two"), "Waiting PodInitializing");
    assert_eq!(node.state("web", "a"), "Waiting PodInitializing");
    node.until_running().await;
    let mut last = seconds(0);
    for (init, next) in [
        ("one", "two"),
        ("two", "three"),
        ("three", "a"),
        ("three", "b"),
    ] {
        let (end, start) = (node.exit_times(&uid, init), node.start_times(&uid, next));
        assert_eq!((end.len(), start.len()), (1, 1));
        assert!(
            end[0] <= start[0] && start[0] - end[0] <= seconds(1),
            "{init} {next}"
        );
        assert!(start[0] >= last);
        last = start[0];
        assert_eq!(node.state("web", init), "Terminated Completed 0");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_init_container_backs_off_while_the_others_wait() {
    let node = Node::new();
    node.sim
        .on_container_with("init", |start| match start.earlier {
            0..=2 => Behavior::exits(seconds(1), 1),
            _ => Behavior::exits(seconds(1), 0),
        });
    let spec = "initContainers: [{name: init, image: 'app:1'}], \
                containers: [{name: a, image: 'app:1'}]";
    let uid = node.apply("web", spec);
    node.until_running().await;
    let (starts, ends) = (
        node.start_times(&uid, "init"),
        node.exit_times(&uid, "init"),
    );
    let waits: Vec<_> = ends
        .iter()
        .zip(&starts[1..])
        .map(|(end, start)| (*start - *end).as_secs())
        .collect();
    assert_eq!(waits, [0, 10, 20]);
    assert_eq!(node.container("web", "init").unwrap().restart_count, 3);
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_init_container_fails_a_pod_that_never_restarts() {
    let node = Node::new();
    node.sim
        .on_container("init", Behavior::exits(seconds(1), 5));
    let spec = "restartPolicy: Never, initContainers: [{name: init, image: 'app:1'}], \
                containers: [{name: a, image: 'app:1'}]";
    let uid = node.apply("web", spec);
    node.until("the end", |node| node.phase("web") == Some(Phase::Failed))
        .await;
    sleep(seconds(60)).await;
    assert_eq!(node.sim.oracle().starts(&uid, "init"), 1);
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 0);
    assert_eq!(node.state("web", "init"), "Terminated Error 5");
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_again_first_after_a_lost_sandbox() {
    let node = Node::new();
    node.sim
        .on_container("init", Behavior::exits(seconds(3), 0));
    let spec = "initContainers: [{name: init, image: 'app:1'}], \
                containers: [{name: a, image: 'app:1'}]";
    let uid = node.apply("web", spec);
    node.until_running().await;
    let sandbox = node.sim.sandboxes(&uid).remove(0);
    node.sim.kill_sandbox(&sandbox);
    node.until("init again", |node| {
        node.sim.oracle().starts(&uid, "init") == 2
    })
    .await;
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 1);
    node.until_running().await;
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 2);
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_pod_ends_it_across_an_agent_restart() {
    let mut node = Node::new();
    let uid = node.apply(
        "job",
        "activeDeadlineSeconds: 100, containers: [{name: a, image: 'app:1'}]",
    );
    node.until_running().await;
    sleep(seconds(50)).await;
    node.restart().await;
    let began = node.start_times(&uid, "a")[0];
    node.until("the end", |node| node.exit_times(&uid, "a").len() == 1)
        .await;
    assert_eq!(node.phase("job"), Some(Phase::Failed));
    let lasted = node.exit_times(&uid, "a")[0] - began;
    assert_eq!(lasted.as_secs(), 100);
    let entry = node.pod("job").unwrap();
    assert_eq!(&*entry.status.reason, "DeadlineExceeded");
    sleep(seconds(60)).await;
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_cannot_be_prepared_holds_up_its_pod() {
    let node = Node::new();
    node.host.fail_prepare(
        "web",
        Some("hostPath type check failed: /x is not a directory"),
    );
    let uid = node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    node.apply("other", "containers: [{name: a, image: 'app:1'}]");
    sleep(seconds(60)).await;
    assert!(node.is_running("other"));
    assert_eq!(node.state("web", "a"), "Waiting ContainerCreating");
    assert_eq!(node.sim.sandboxes(&uid).len(), 0);
    let expected = "FailedMount hostPath type check failed: /x is not a directory";
    assert!(node.events("web").contains(&expected.to_owned()));
    node.host.fail_prepare("web", None);
    let took = node.until_running().await;
    assert!(took <= seconds(11), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_dies_at_once_is_not_replaced_in_a_hot_loop() {
    let node = Node::new();
    let uid = node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    for _ in 0..6000 {
        for id in node.sim.sandboxes(&uid) {
            node.sim.kill_sandbox(&id);
        }
        sleep(std::time::Duration::from_millis(10)).await;
    }
    let made = node.calls("RunPodSandbox");
    assert!((4..=15).contains(&made), "{made} sandboxes in a minute");
    assert!(node.sim.sandboxes(&uid).len() <= 3);
    // Its containers died with the sandboxes, and may be backed off.
    let took = node.until_running().await;
    assert!(took <= seconds(310), "{took:?}");
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn host_ip_follows_node_addresses_and_pods_wait_for_the_first() {
    let node = Node::new();
    let env = "env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]";
    let asks = format!("containers: [{{name: app, image: 'app:1', {env}}}]");
    node.apply("asks", &asks);
    node.apply(
        "host",
        "hostNetwork: true, containers: [{name: app, image: 'app:1'}]",
    );
    let runs = |node: &Node| node.is_running("host");
    node.until("the pod on the host's network runs", runs).await;
    let ips = |node: &Node| {
        node.pod("host")
            .expect("it is there")
            .status
            .pod_ips
            .clone()
    };
    assert_eq!(ips(&node), Vec::<Box<str>>::new());
    assert_eq!(
        node.state("asks", "app"),
        "Waiting CreateContainerConfigError"
    );

    for ip in ["192.0.2.7", "192.0.2.8"] {
        node.ips
            .send_replace([ip.parse().expect("an address")].into());
        let reported = |node: &Node| *ips(node) == [Box::from(ip)];
        node.until("its address is published", reported).await;
    }
    assert_eq!(node.sim.oracle().starts(&node.uid("host"), "app"), 1);
}
