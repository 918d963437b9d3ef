//! Orphaned pods in the runtime and orphaned directories on the host.

use rubelet_sim::{Behavior, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

#[tokio::test(start_paused = true)]
async fn an_orphaned_pod_is_removed_once_all_sources_are_ready() {
    let mut node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let uid = node.apply("web", &format!("terminationGracePeriodSeconds: 9, {APP}"));
    node.until_running().await;
    sleep(seconds(2)).await;
    node.kill().await;
    node.remove_manifest("web");
    node.set_waiting(true);
    node.start();
    sleep(seconds(300)).await;
    assert!(
        node.sim.running(&uid, "app").is_some(),
        "a source that was not read yet may list it"
    );
    node.set_waiting(false);
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(
        took >= seconds(9) && took < seconds(11),
        "its own grace: {took:?}"
    );
    assert_eq!(node.host.cleaned(&uid), 1);
    sleep(seconds(2)).await;
    assert!(!node.record("web").exists());
}

#[tokio::test(start_paused = true)]
async fn a_manifest_from_a_late_source_finds_its_pod_untouched() {
    let mut node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    node.kill().await;
    node.remove_manifest("web");
    node.set_waiting(true);
    node.start();
    sleep(seconds(60)).await;
    node.apply("web", APP);
    node.set_waiting(false);
    node.until_running().await;
    sleep(seconds(60)).await;
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    assert_eq!(node.calls("StopContainer"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_directory_without_a_pod_is_removed() {
    let mut node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    let sandbox = node.sim.sandboxes(&uid).remove(0);
    node.kill().await;
    node.sim.remove_sandbox_externally(&sandbox);
    node.remove_manifest("web");
    node.start();
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took <= seconds(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn sandboxes_of_other_clients_are_left_alone() {
    let node = Node::new();
    let metadata = rubelet_cri::v1::PodSandboxMetadata {
        name: "other".to_owned(),
        uid: "other".to_owned(),
        namespace: "x".to_owned(),
        attempt: 0,
    };
    let config = rubelet_cri::v1::PodSandboxConfig {
        metadata: Some(metadata),
        ..Default::default()
    };
    let request = rubelet_cri::v1::RunPodSandboxRequest {
        config: Some(config),
        ..Default::default()
    };
    node.sim.runtime().run_pod_sandbox(request).await.unwrap();
    node.apply("web", APP);
    node.until_running().await;
    sleep(seconds(60)).await;
    assert_eq!(node.sim.sandboxes("other").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_written_again_waits_for_the_sandbox_of_an_abandoned_call() {
    let node = Node::new();
    node.wire.finish_abandoned_calls();
    let uid = node.apply("web", APP);
    node.until_running().await;
    let first = node.sim.sandboxes(&uid).remove(0);
    let hang = node.sim.hang("RunPodSandbox", Subject::any());
    node.sim.kill_sandbox(&first);
    let replaces = |node: &Node| node.calls("RunPodSandbox") > 1;
    node.until("the call hangs", replaces).await;
    node.remove_manifest("web");
    node.until("the pod is gone", |node| node.is_gone(&uid))
        .await;
    node.apply("web", APP);
    node.until("the next call hangs", |node| {
        node.calls("RunPodSandbox") > 2
    })
    .await;
    drop(hang);
    node.until_running().await;
    sleep(seconds(60)).await;
    node.assert_never_twice(&uid);
    assert_eq!(node.sim.sandboxes(&uid).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_created_after_the_pod_was_removed_goes_at_once() {
    let node = Node::new();
    node.wire.finish_abandoned_calls();
    let hang = node.sim.hang("RunPodSandbox", Subject::any());
    let uid = node.apply("web", APP);
    node.until("the call hangs", |node| node.calls("RunPodSandbox") > 0)
        .await;
    node.remove_manifest("web");
    node.until("the pod is gone", |node| node.is_gone(&uid))
        .await;
    // The call has its effect after more lists.
    sleep(seconds(3)).await;
    drop(hang);
    node.until("the sandbox is there", |node| {
        !node.sim.sandboxes(&uid).is_empty()
    })
    .await;
    let took = node.until("it is gone", |node| node.is_gone(&uid)).await;
    assert!(took <= seconds(2), "{took:?}");
}
