//! Ephemeral containers with a `targetContainerName`.

use rubelet_cri::v1;
use tokio::time::sleep;

use super::node::{Node, seconds};

/// A node with a running pod that has an ephemeral container which targets `target`.
async fn debugged(target: &str) -> (Node, String) {
    let node = Node::new();
    let uid = node.apply(
        "web",
        "restartPolicy: Never, containers: [{name: app, image: 'app:1'}, {name: other, image: 'app:1'}]",
    );
    node.until_running().await;
    node.kill_container(&uid, "other", 1);
    sleep(seconds(5)).await;
    let json =
        format!(r#"{{"name": "debug", "image": "app:2", "targetContainerName": "{target}"}}"#);
    node.ask("web", |intents| intents.ephemeral = vec![json.into()])
        .await;
    (node, uid)
}

#[tokio::test(start_paused = true)]
async fn the_target_is_the_running_instance() {
    let (node, uid) = debugged("app").await;
    node.until("it runs", |node| node.sim.running(&uid, "debug").is_some())
        .await;
    let debug = node.sim.running(&uid, "debug").unwrap();
    let config = node.sim.container_config(&debug).unwrap();
    let options = config
        .linux
        .and_then(|linux| linux.security_context)
        .and_then(|security| security.namespace_options)
        .expect("namespaces are set");
    assert_eq!(options.pid(), v1::NamespaceMode::Target);
    assert_eq!(Some(options.target_id), node.sim.running(&uid, "app"));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_not_running_is_reported() {
    let (node, uid) = debugged("other").await;
    sleep(seconds(30)).await;
    assert!(node.sim.running(&uid, "debug").is_none());
    let events = node.events("web");
    let failed = "Failed Error: target container other is not running".to_owned();
    assert!(events.contains(&failed), "{events:?}");
}
