//! Image pulls, and how their failures are reported.

use rubelet_api::status::{ContainerState, Phase};
use rubelet_cri::CriErrorKind;
use rubelet_sim::Pull;
use tokio::time::sleep;

use super::node::{Node, seconds};

fn message(node: &Node) -> String {
    match node.container("web", "a").map(|container| container.state) {
        Some(ContainerState::Waiting { message, .. }) => message.into(),
        _ => String::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_absent_image_with_policy_never_is_reported() {
    let node = Node::new();
    node.apply(
        "web",
        "containers: [{name: a, image: 'img:1', imagePullPolicy: Never}]",
    );
    node.until("it is reported", |node| {
        node.state("web", "a") == "Waiting ErrImageNeverPull"
    })
    .await;
    let expected = "Container image \"img:1\" is not present with pull policy of Never";
    assert_eq!(message(&node), expected);
    assert_eq!(node.phase("web"), Some(Phase::Pending));
    let events = node.events("web");
    assert!(
        events.contains(&format!("ErrImageNeverPull {expected}")),
        "{events:?}"
    );
    assert!(
        events.contains(&"Failed Error: ErrImageNeverPull".to_owned()),
        "{events:?}"
    );
    assert_eq!(node.calls("PullImage"), 0);

    // The image is loaded by hand.
    node.sim.add_image("img:1");
    let took = node.until_running().await;
    assert!(took <= seconds(11), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_image_reference_is_reported() {
    let node = Node::new();
    node.apply("web", "containers: [{name: a, image: 'UPPER:1'}]");
    node.until("it is reported", |node| {
        node.state("web", "a") == "Waiting InvalidImageName"
    })
    .await;
    let reported = message(&node);
    assert!(
        reported.starts_with("Failed to apply default image tag \"UPPER:1\": "),
        "{reported}"
    );
    let events = node.events("web");
    assert!(
        events.contains(&format!("InspectFailed {reported}")),
        "{events:?}"
    );
    node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    let took = node.until_running().await;
    assert!(took < seconds(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_pull_is_reported_with_its_cause_and_then_as_back_off() {
    let node = Node::new();
    node.sim
        .on_pull("img:1", Pull::fails("no route to the registry"));
    node.apply("web", "containers: [{name: a, image: 'img:1'}]");
    node.until("the cause", |node| {
        node.state("web", "a") == "Waiting ErrImagePull"
    })
    .await;
    let cause = message(&node);
    assert!(
        cause.starts_with("failed to pull image \"img:1\": "),
        "{cause}"
    );
    assert!(cause.ends_with("no route to the registry"), "{cause}");
    let took = node
        .until("the back-off", |node| {
            node.state("web", "a") == "Waiting ImagePullBackOff"
        })
        .await;
    assert!(took <= seconds(6), "{took:?}");
    let reported = message(&node);
    assert_eq!(
        reported,
        format!("Back-off pulling image \"img:1\": ErrImagePull: {cause}")
    );
    let events = node.events("web");
    for event in [
        "Pulling Pulling image \"img:1\"",
        "Failed Error: ErrImagePull",
        "BackOff Back-off pulling image \"img:1\"",
    ] {
        assert!(events.contains(&event.to_owned()), "{event}: {events:?}");
    }
    let failed = "Failed Failed to pull image \"img:1\": ";
    assert!(
        events.iter().any(|event| event.starts_with(failed)),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn failed_pulls_are_repeated_after_10_20_40_up_to_300_seconds() {
    let mut node = Node::new();
    node.sim.on_pull("img:1", Pull::fails("no"));
    node.apply("web", "containers: [{name: a, image: 'img:1'}]");
    node.until("four pulls", |node| node.calls("PullImage") == 4)
        .await;
    // The back-off survives a restart of the agent.
    sleep(seconds(5)).await;
    node.restart().await;
    node.until("eight pulls", |node| node.calls("PullImage") == 8)
        .await;
    let calls = node.sim.oracle().calls();
    let times: Vec<_> = calls
        .iter()
        .filter(|call| call.call == "PullImage")
        .map(|call| call.began)
        .collect();
    let waits: Vec<_> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect();
    assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);

    node.sim.on_pull("img:1", Pull::succeeds());
    let took = node.until_running().await;
    assert!(took <= seconds(301), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&node.uid("web"), "a"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_policy_always_asks_the_registry_before_each_start() {
    let node = Node::new();
    node.sim.on_pull("app:1", Pull::succeeds());
    let spec = "containers: [{name: a, image: 'app:1', imagePullPolicy: Always}]";
    let uid = node.apply("web", spec);
    node.until_running().await;
    assert_eq!(node.calls("PullImage"), 1);
    node.kill_container(&uid, "a", 1);
    node.until("a restart", |node| node.sim.oracle().starts(&uid, "a") == 2)
        .await;
    assert_eq!(node.calls("PullImage"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_registry_is_reported() {
    let node = Node::new();
    let kind = CriErrorKind::Unavailable;
    let pull = Pull::fails_as(kind, "RegistryUnavailable: the registry is down");
    node.sim.on_pull("img:1", pull);
    node.apply("web", "containers: [{name: a, image: 'img:1'}]");
    node.until("it is reported", |node| {
        node.state("web", "a") == "Waiting RegistryUnavailable"
    })
    .await;
    assert_eq!(
        message(&node),
        "image pull failed for img:1 because the registry is unavailable: the registry is down"
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_image_of_one_container_does_not_hold_up_the_others() {
    let node = Node::new();
    node.sim.on_pull("img:1", Pull::fails("no"));
    let spec = "containers: [{name: a, image: 'img:1'}, {name: b, image: 'app:1'}]";
    let uid = node.apply("web", spec);
    let runs = |node: &Node| node.state("web", "b") == "Running";
    let took = node.until("b runs", runs).await;
    assert!(took < seconds(2), "{took:?}");
    node.kill_container(&uid, "b", 1);
    let again = |node: &Node| node.sim.oracle().starts(&uid, "b") == 2;
    let took = node.until("b runs again", again).await;
    assert!(took < seconds(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn pulls_beyond_the_rate_fail_and_are_tried_again_after_the_back_off() {
    let mut node = Node::new();
    node.kill().await;
    node.pull_rate = (1, 2);
    node.start();
    for name in ["web", "first", "second", "third"] {
        node.sim.on_pull(&format!("{name}:1"), Pull::succeeds());
        node.apply(
            name,
            &format!("containers: [{{name: a, image: '{name}:1'}}]"),
        );
    }
    let names = ["web", "first", "second", "third"];
    node.until("two are refused", |node| {
        let states = names.map(|name| node.state(name, "a"));
        let of = |state: &str| states.iter().filter(|found| *found == state).count();
        of("Running") == 2 && of("Waiting ErrImagePull") == 2
    })
    .await;
    let mut events = names.iter().flat_map(|name| node.events(name));
    assert!(
        events.any(|event| event.ends_with(":1\": pull QPS exceeded")),
        "{:?}",
        names.map(|name| node.events(name))
    );
    assert_eq!(node.calls("PullImage"), 2);
    node.until_running().await;
    assert_eq!(node.calls("PullImage"), 4);
}
