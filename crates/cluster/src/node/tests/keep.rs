//! How the node stays up to date.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_change_is_sent_each_five_minutes() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    model.calls();
    seconds(3600).await;
    let patches = model.count("patch node");
    assert!((11..=13).contains(&patches), "{patches} patches in an hour");
    assert_eq!(model.count("get node") + model.count("create node"), 0);
    assert!(agent.is_ready());
    let ready = model.node().unwrap();
    let ready = ready.status.condition("Ready").unwrap();
    assert!(ready.last_heartbeat_time > ready.last_transition_time);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_only_restarts_leaves_the_node_ready() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    agent.runtime_is_silent();
    seconds(25).await;
    agent.runtime_is_ready();
    seconds(60).await;
    assert!(agent.is_ready() && !agent.events().contains(&"NodeNotReady".to_owned()));

    agent.runtime_is_silent();
    seconds(25).await;
    assert!(agent.is_ready());
    seconds(20).await;
    assert_eq!(
        agent.shown_ready(),
        Some((
            "False".to_owned(),
            "container runtime is down: refused".to_owned()
        ))
    );
    agent.runtime_is_ready();
    millis(50).await;
    assert!(agent.is_ready());
    let events = agent.events();
    assert_eq!(events[events.len() - 2..], ["NodeNotReady", "NodeReady"]);
}

#[tokio::test(start_paused = true)]
async fn what_happened_while_the_api_server_was_away_is_reported_once_with_its_time() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    model.set_away(true);
    agent.runtime.send_modify(|state| {
        state.network_problem = Some("container runtime network not ready: none".into());
    });
    seconds(1).await;
    let then = agent.recorder.board().list();
    let not_ready = then
        .iter()
        .find(|(_, _, event)| *event.reason == *"NodeNotReady");
    let since = not_ready.unwrap().2.first.as_second();
    seconds(120).await;
    model.set_away(false);
    seconds(8).await;
    let node = model.node().unwrap();
    let ready = node.status.condition("Ready").unwrap();
    assert_eq!(ready.last_transition_time.unwrap().as_second(), since);
    assert_eq!(agent.events().last().unwrap(), "NodeNotReady");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_taken_for_dead_says_at_once_that_it_lives() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(30).await;
    model.change_node(|node| {
        for condition in &mut node.status.conditions {
            condition.status = "Unknown".into();
        }
    });
    millis(100).await;
    assert!(agent.is_ready());
}

#[tokio::test(start_paused = true)]
async fn who_keeps_undoing_what_the_node_says_is_not_fought() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    model.calls();
    for _ in 0..1000 {
        millis(50).await;
        model.change_node(|node| {
            node.metadata.labels.remove("kubernetes.io/os");
        });
    }
    let patches = model.count("patch node");
    assert!(
        (5..=35).contains(&patches),
        "{patches} patches in 50 seconds"
    );
    seconds(20).await;
    let labels = model.node().unwrap().metadata.labels;
    assert_eq!(&*labels["kubernetes.io/os"], "linux");
    assert!(agent.is_ready());
}

#[tokio::test(start_paused = true)]
async fn images_and_labels_of_others_are_shown() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    agent.images.send_modify(|images| {
        images.images = vec![rubelet_node_plan::node_status::object::ContainerImage {
            names: vec!["busybox:1".into()],
            size_bytes: 5,
        }]
        .into();
    });
    model.change_node(|node| {
        node.metadata.labels.insert("zone".into(), "a".into());
        node.spec.unschedulable = true;
    });
    millis(100).await;
    assert_eq!(model.node().unwrap().status.images[0].size_bytes, 5);
    let view = agent.handle.node.borrow().clone().unwrap();
    assert_eq!(&*view.admission.labels["zone"], "a");
    assert!(view.unschedulable);
    assert_eq!(agent.events().last().unwrap(), "NodeNotSchedulable");
}

#[tokio::test(start_paused = true)]
async fn pressure_shows_at_once_and_ends_when_it_does() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    let shown = || {
        let node = model.node().unwrap();
        let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure"];
        kinds.map(|kind| node.status.condition(kind).unwrap().status.to_string())
    };
    assert_eq!(shown(), ["False", "False", "False"]);
    agent.pressure.send_modify(|pressure| {
        pressure.memory = true;
        pressure.pid = true;
    });
    millis(100).await;
    assert_eq!(shown(), ["True", "False", "True"]);
    assert!(agent.handle.admission().pressure.memory);
    let events = agent.events();
    assert_eq!(
        events[events.len() - 2..],
        ["NodeHasInsufficientMemory", "NodeHasInsufficientPID"]
    );
    agent.pressure.send_replace(Pressure::default());
    millis(100).await;
    assert_eq!(shown(), ["False", "False", "False"]);
    assert!(!agent.handle.admission().pressure.memory);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_shuts_down_is_not_ready_at_once() {
    let model = Model::new();
    let agent = Agent::ready(&model);
    seconds(1).await;
    let shown = || {
        let node = model.node().unwrap();
        let ready = node.status.condition("Ready").unwrap();
        let texts = [&ready.status, &ready.reason, &ready.message];
        texts.map(ToString::to_string)
    };
    assert_eq!(shown()[0], "True");
    agent.shutdown.send_replace(ShutdownState::ShuttingDown);
    millis(100).await;
    assert_eq!(
        shown(),
        ["False", "KubeletNotReady", "node is shutting down"]
    );
    assert_eq!(agent.events().last().unwrap(), "NodeNotReady");
    agent.shutdown.send_replace(ShutdownState::Running);
    millis(100).await;
    assert_eq!(shown()[0], "True");
    assert_eq!(agent.events().last().unwrap(), "NodeReady");
}
