//! Manifests that change.

use rubelet_api::status::Phase;
use rubelet_sim::Behavior;
use tokio::time::sleep;

use super::node::{Node, seconds};

/// Counts of starts of `a`, of `b`, and of sandboxes.
fn starts(node: &Node, uid: &str) -> [usize; 3] {
    let oracle = node.sim.oracle();
    [
        oracle.starts(uid, "a"),
        oracle.starts(uid, "b"),
        node.calls("RunPodSandbox"),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_edit_restarts_what_it_changed_and_nothing_else() {
    let containers = "containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:1'}]";
    for (what, metadata, spec, expected) in [
        ("nothing", "", containers.to_owned(), [1, 1, 1]),
        ("a label", "labels: {a: b}", containers.to_owned(), [1, 1, 1]),
        ("an annotation", "annotations: {a: b}", containers.to_owned(), [1, 1, 1]),
        (
            "an image",
            "",
            "containers: [{name: a, image: 'app:2'}, {name: b, image: 'app:1'}]".to_owned(),
            [2, 1, 1],
        ),
        (
            "a command",
            "",
            "containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:1', command: [x]}]"
                .to_owned(),
            [1, 2, 1],
        ),
        ("the network", "", format!("hostNetwork: true, {containers}"), [2, 2, 2]),
        (
            "an added container",
            "",
            "containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:1'}, {name: c, image: 'app:1'}]"
                .to_owned(),
            [1, 1, 1],
        ),
        ("a removed container", "", "containers: [{name: a, image: 'app:1'}]".to_owned(), [1, 1, 1]),
        (
            "an added init container",
            "",
            format!("initContainers: [{{name: init, image: 'app:1'}}], {containers}"),
            [2, 2, 2],
        ),
    ] {
        let node = Node::new();
        node.sim.on_container("init", Behavior::exits(seconds(1), 0));
        let uid = node.apply("web", containers);
        node.until_running().await;
        sleep(seconds(20)).await;
        assert_eq!(node.apply_with("web", metadata, &spec), uid);
        sleep(seconds(20)).await;
        node.until_running().await;
        assert_eq!(starts(&node, &uid), expected, "{what}");
        node.assert_never_twice(&uid);
        let entry = node.pod("web").unwrap();
        let published = entry.pod.labels.len() + entry.status.containers.len();
        let wanted = usize::from(what == "a label")
            + match what {
                "an added container" => 3,
                "a removed container" => 1,
                _ => 2,
            };
        assert_eq!(published, wanted, "{what}");
        let restarts: u32 =
            entry.status.containers.iter().map(|container| container.restart_count).sum();
        let restarted = expected[0] + expected[1] - 2;
        assert_eq!(usize::try_from(restarts).unwrap(), restarted, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn edits_during_a_stop_end_with_the_last_version() {
    let node = Node::new();
    node.sim
        .on_image("app:1", Behavior::runs().exiting_on_term(seconds(10), 0));
    let uid = node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    node.until_running().await;
    node.apply("web", "containers: [{name: a, image: 'app:2'}]");
    sleep(seconds(3)).await;
    node.apply(
        "web",
        "containers: [{name: a, image: 'app:1', command: [x]}]",
    );
    sleep(seconds(30)).await;
    node.until_running().await;
    let id = node.sim.running(&uid, "a").unwrap();
    assert_eq!(node.sim.container_config(&id).unwrap().command, ["x"]);
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn an_edit_resets_the_back_off_of_a_crashing_container() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::exits(seconds(1), 1));
    let uid = node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    node.until("five crashes", |node| node.exit_times(&uid, "a").len() == 5)
        .await;
    sleep(seconds(5)).await;
    node.apply("web", "containers: [{name: a, image: 'app:2'}]");
    let took = node.until_running().await;
    assert!(took < seconds(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_finished_pod_that_is_edited_runs_again() {
    for agent in ["runs", "is killed before", "is killed soon after"] {
        let mut node = Node::new();
        node.sim.on_image("app:1", Behavior::exits(seconds(1), 0));
        node.sim.on_image("app:2", Behavior::exits(seconds(1), 3));
        let job = |image: &str| {
            format!("restartPolicy: Never, containers: [{{name: a, image: '{image}'}}]")
        };
        let uid = node.apply("job", &job("app:1"));
        node.until("the end", |node| {
            node.phase("job") == Some(Phase::Succeeded)
        })
        .await;
        sleep(seconds(30)).await;
        if agent == "is killed before" {
            node.kill().await;
        }
        node.apply("job", &job("app:2"));
        match agent {
            "is killed before" => node.start(),
            "is killed soon after" => {
                node.sim.set_latency(std::time::Duration::from_millis(10));
                sleep(std::time::Duration::from_millis(15)).await;
                node.restart().await;
            }
            _ => {}
        }
        node.until("another end", |node| {
            node.phase("job") == Some(Phase::Failed)
        })
        .await;
        assert_eq!(node.state("job", "a"), "Terminated Error 3", "{agent}");
        assert_eq!(node.sim.oracle().starts(&uid, "a"), 2, "{agent}");
        // A label does not make it run again.
        node.apply_with("job", "labels: {a: b}", &job("app:2"));
        sleep(seconds(30)).await;
        assert_eq!(node.sim.oracle().starts(&uid, "a"), 2, "{agent}");
        assert_eq!(node.phase("job"), Some(Phase::Failed), "{agent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_pod_readded_during_its_removal_runs_again() {
    for killed in [false, true] {
        let mut node = Node::new();
        node.sim.on_image("app:1", Behavior::exits(seconds(1), 0));
        node.sim
            .on_container("slow", Behavior::runs().exiting_on_term(seconds(20), 0));
        let spec = "restartPolicy: Never, \
                    containers: [{name: a, image: 'app:1'}, {name: slow, image: 'app:2'}]";
        let uid = node.apply("job", spec);
        node.until("a has ended", |node| {
            node.state("job", "a") == "Terminated Completed 0"
        })
        .await;
        node.remove_manifest("job");
        sleep(seconds(5)).await;
        if killed {
            node.kill().await;
            node.apply("job", spec);
            node.start();
        } else {
            node.apply("job", spec);
        }
        let again = |node: &Node| node.sim.oracle().starts(&uid, "a") == 2;
        let took = node.until("it runs again", again).await;
        assert!(took <= seconds(22), "{took:?}");
        node.assert_never_twice(&uid);
    }
}

#[tokio::test(start_paused = true)]
async fn an_edited_container_stops_with_its_original_grace_period() {
    let spec = |grace: u32, image: &str, network: bool| {
        format!(
            "terminationGracePeriodSeconds: {grace}, hostNetwork: {network}, \
             containers: [{{name: app, image: '{image}'}}]"
        )
    };
    // Once only the container is replaced, once the sandbox as well.
    for edited in [spec(600, "app:2", false), spec(600, "app:1", true)] {
        let node = Node::new();
        node.sim.on_image("app:1", Behavior::runs().ignoring_term());
        let uid = node.apply("web", &spec(20, "app:1", false));
        node.until_running().await;
        sleep(seconds(5)).await;
        node.apply("web", &edited);
        let ended = |node: &Node| !node.exit_times(&uid, "app").is_empty();
        let took = node.until("the old container has ended", ended).await;
        assert!(
            took >= seconds(19) && took <= seconds(22),
            "{edited}: {took:?}"
        );
    }
}
