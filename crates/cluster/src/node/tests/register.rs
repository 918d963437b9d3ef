//! How the node comes into being.

use super::*;

const BORN: [&str; 4] = [
    "Starting",
    "NodeHasSufficientMemory",
    "NodeHasNoDiskPressure",
    "NodeHasSufficientPID",
];

#[tokio::test(start_paused = true)]
async fn a_node_registers_at_once_and_is_ready_when_the_runtime_is() {
    let model = Model::new();
    let agent = Agent::start(&model, |_| {});
    millis(1050).await;
    assert_eq!(
        agent.shown_ready(),
        Some((
            "False".to_owned(),
            "[container runtime status check may not have completed yet, network state unknown]"
                .to_owned()
        ))
    );
    assert_eq!(agent.events(), BORN);
    seconds(3).await;
    agent.runtime_is_ready();
    millis(50).await;
    assert!(agent.is_ready());
    let took = |part: &str| {
        let name = format!("\nkubelet_node_startup_{part}duration_seconds ");
        let text = agent.metrics.render();
        let (_, rest) = text.split_once(&name).expect("the metric");
        rest.lines().next().unwrap().parse::<f64>().unwrap()
    };
    // It waited a second for the runtime, and was ready three seconds later.
    assert!(
        (1.0..1.1).contains(&took("pre_registration_")),
        "{}",
        took("pre_registration_")
    );
    assert!(
        (3.0..3.2).contains(&took("post_registration_")),
        "{}",
        took("post_registration_")
    );
    assert!(took("") > took("pre_kubelet_") + 4.0, "{}", took(""));
    let node = model.node().unwrap();
    assert_eq!(
        &*node.status.node_info.container_runtime_version,
        "containerd://2.1.4"
    );
    assert_eq!(agent.events().last().unwrap(), "NodeReady");
    for once in ["create node", "create lease", "patch node"] {
        assert_eq!(model.count(once), 1, "{once}");
    }
    let view = agent.handle.node.borrow().clone().unwrap();
    assert_eq!((&*view.uid, &*view.admission.name), ("uid-1", NAME));
    assert_eq!(view.admission.allocatable.pods, 110);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_agent_does_not_make_a_ready_node_unready() {
    let model = Model::new();
    let first = Agent::ready(&model);
    seconds(60).await;
    drop(first);
    let agent = Agent::start(&model, |_| {});
    millis(900).await;
    agent.runtime_is_ready();
    for _ in 0..100 {
        millis(10).await;
        assert!(agent.is_ready());
    }
    assert_eq!(agent.events(), BORN);
}

#[tokio::test(start_paused = true)]
async fn without_an_api_server_the_node_tries_on_and_says_nothing_twice() {
    let model = Model::new();
    model.set_away(true);
    let agent = Agent::ready(&model);
    millis(1500).await;
    // After 0.1, 0.2, 0.4 and 0.8 seconds.
    assert_eq!(model.count("create node"), 4);
    seconds(600).await;
    let tries = model.count("create node");
    assert!((80..95).contains(&tries), "{tries} tries in ten minutes");
    assert_eq!(agent.events(), BORN);
    assert!(model.reconnects() > 0);
    assert!(agent.handle.node.borrow().is_none());
    let own = agent.handle.admission();
    assert_eq!(own.allocatable.pods, 110, "pods of before can start");

    model.set_away(false);
    seconds(8).await;
    assert!(agent.is_ready());
    assert_eq!(agent.events(), BORN, "it was ready from the begin on");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_there_is_taken_over_with_one_patch() {
    let model = Model::new();
    model.write_node(&left_behind());
    let agent = Agent::ready(&model);
    seconds(1).await;
    let node = model.node().unwrap();
    assert_eq!(&*node.metadata.labels["kubernetes.io/hostname"], NAME);
    assert_eq!(&*node.metadata.labels["role"], "web");
    assert_eq!(&*node.status.capacity["nvidia.com/gpu"], "0");
    assert!(agent.is_ready());
    assert!(agent.events().contains(&"Rebooted".to_owned()));
    assert_eq!(model.count("patch node"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_may_not_create_itself_uses_the_one_that_is_there() {
    let model = Model::new();
    model.forbid_creation();
    let agent = Agent::ready(&model);
    seconds(5).await;
    assert!(model.node().is_none());
    model.write_node(&left_behind());
    seconds(8).await;
    assert!(agent.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_must_not_register_waits_until_somebody_made_it() {
    let model = Model::new();
    let agent = Agent::start(&model, |settings| settings.register = false);
    agent.runtime_is_ready();
    seconds(60).await;
    assert_eq!(model.calls(), ["get lease"]);
    model.write_node(&left_behind());
    millis(100).await;
    assert!(agent.is_ready());
    let node = model.node().unwrap();
    assert!(!node.metadata.labels.contains_key("kubernetes.io/hostname"));
    assert!(model.lease().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_an_administrator_deleted_comes_back_with_a_restart_only() {
    let model = Model::new();
    for uid in ["uid-1", "uid-2", "uid-3"] {
        let agent = Agent::ready(&model);
        seconds(1).await;
        assert!(agent.is_ready());
        assert_eq!(&*model.node().unwrap().metadata.uid, uid);
        assert_eq!(*agent.problem.borrow(), None);
        seconds(20).await;
        let lease = model.lease().unwrap();
        assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], uid);
        model.delete_node();
        seconds(1800).await;
        assert!(model.node().is_none());
        assert!(agent.handle.node.borrow().is_none());
        let told = agent.problem.borrow().clone().unwrap();
        assert!(
            told.contains("a restart of the agent registers it again"),
            "{told}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_deleted_and_that_others_create_is_kept_up() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    model.delete_node();
    seconds(60).await;
    model.write_node(&left_behind());
    seconds(20).await;
    assert!(agent.is_ready());
    assert_eq!(*agent.problem.borrow(), None);
}

#[tokio::test(start_paused = true)]
async fn the_node_can_be_read_once_more_and_nobody_waits_long_for_it() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    let before = model.count("get node");
    agent.handle.refresh().await;
    assert_eq!(model.count("get node"), before + 1);
    model.set_away(true);
    let asked = tokio::time::Instant::now();
    agent.handle.refresh().await;
    assert!(asked.elapsed() <= Duration::from_secs(2));
}
