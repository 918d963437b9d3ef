//! The task against an API server.

use std::time::Duration;

use rubelet_api::{
    pod::Pod,
    status::{Phase, PodStatus},
};
use rubelet_pod_plan::history::ReplacedPod;
use serde_json::{Value, json};

use super::{
    super::StatusContext,
    server::{Node, pass},
};
use crate::{
    call_error::CallErrorKind,
    source::ApiPod,
    test_objects::{
        condition, container, copy, deletion, ended, entry, from_file, mirror_of, plain, running,
        status,
    },
};

fn runs() -> PodStatus {
    status(Phase::Running, vec![running("a")])
}

fn ready(is: bool) -> PodStatus {
    let mut said = runs();
    said.conditions = vec![condition("Ready", is)];
    said
}

fn pending() -> Value {
    json!({"phase": "Pending"})
}

fn is_ready(status: &Value) -> bool {
    let list = status["conditions"].as_array().expect("conditions");
    list.iter()
        .any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// A pod that the API server has and that runs.
async fn running_pod(node: &Node, name: &str) -> std::sync::Arc<Pod> {
    let pod = plain(name, "Always");
    node.server.put(copy(&pod, "", &pending()));
    node.board.set(pod.uid.clone(), entry(&pod, ready(true)));
    pass(50).await;
    assert_eq!(node.server.calls().len(), 1);
    node.lags.take();
    pod
}

#[tokio::test(start_paused = true)]
async fn a_change_goes_out_at_once_and_once() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    let start = tokio::time::Instant::now();
    for is in [false, true, false] {
        node.board.set(web.uid.clone(), entry(&web, ready(is)));
        pass(20).await;
        assert_eq!(node.server.calls().len(), 1);
        assert_eq!(is_ready(&node.server.status(&web.uid)), is);
    }
    assert_eq!(node.lags.take(), [0, 0, 0]);
    // Long quiet: nothing is sent, nothing is asked.
    pass(3_600_000).await;
    assert_eq!(node.server.calls(), []);
    assert!(start.elapsed() > Duration::from_secs(3600));
}

#[tokio::test(start_paused = true)]
async fn what_changes_during_a_call_is_sent_after_it_and_only_the_newest() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    node.server.set_latency(Duration::from_millis(100));
    for step in 0..9 {
        node.board
            .set(web.uid.clone(), entry(&web, ready(step % 2 == 1)));
        pass(10).await;
    }
    pass(500).await;
    let calls = node.server.calls();
    assert_eq!(
        calls.len(),
        1,
        "the ninth says what the first one said: {calls:?}"
    );
    for is in [true, false, true] {
        node.board.set(web.uid.clone(), entry(&web, ready(is)));
        pass(10).await;
    }
    pass(500).await;
    assert!(is_ready(&node.server.status(&web.uid)));
    assert_eq!(node.server.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_hides_no_change() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    node.server.set_echo(Some(Duration::from_secs(20)));
    for is in [false, true, false, true] {
        node.board.set(web.uid.clone(), entry(&web, ready(is)));
        pass(100).await;
        assert_eq!(is_ready(&node.server.status(&web.uid)), is);
    }
    assert_eq!(node.server.calls().len(), 4);
    pass(60_000).await;
    assert_eq!(
        node.server.calls(),
        [],
        "old news of the watch is not put right"
    );
    assert!(is_ready(&node.server.status(&web.uid)));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_goes_after_its_end_was_told_and_came_back() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    let stored = node.server.stored(&web.uid).unwrap();
    node.server.put(ApiPod {
        deletion: deletion(),
        ..stored
    });
    node.server.set_echo(Some(Duration::from_millis(200)));
    let mut last = entry(
        &web,
        status(Phase::Succeeded, vec![container("a", ended(0))]),
    );
    node.board.set(web.uid.clone(), last.clone());
    pass(500).await;
    let calls = node.server.calls();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].1.ends_with("Succeeded"));
    last.finished = true;
    node.server.set_echo(Some(Duration::from_millis(1)));
    node.board.set(web.uid.clone(), last);
    pass(100).await;
    let calls = node.server.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].1, "DELETE web");
    assert_eq!(node.server.stored(&web.uid), None);
    node.board.remove(&web.uid);
    pass(600_000).await;
    assert_eq!(node.server.calls(), []);
}

#[tokio::test(start_paused = true)]
async fn end_and_finish_together_are_reported_in_order() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    let stored = node.server.stored(&web.uid).unwrap();
    node.server.put(ApiPod {
        deletion: deletion(),
        ..stored
    });
    node.server.set_echo(Some(Duration::from_millis(300)));
    let mut last = entry(&web, status(Phase::Running, vec![container("a", ended(1))]));
    last.finished = true;
    node.board.set(web.uid.clone(), last);
    pass(200).await;
    assert_eq!(node.server.calls().len(), 1, "only the patch");
    pass(200).await;
    let calls = node.server.calls();
    assert_eq!(
        calls.iter().map(|call| &*call.1).collect::<Vec<_>>(),
        ["DELETE web"]
    );
}

#[tokio::test(start_paused = true)]
async fn with_the_api_server_away_the_newest_waits_and_goes_when_it_is_back() {
    const PODS: usize = 60;
    let node = Node::start(8);
    let mut pods = Vec::new();
    for number in 0..PODS {
        pods.push(running_pod(&node, &format!("p{number}")).await);
    }
    node.server.set_away(true);
    for round in 0..50 {
        for pod in &pods {
            node.board
                .set(pod.uid.clone(), entry(pod, ready(round % 2 == 1)));
        }
        pass(1000).await;
    }
    for pod in &pods {
        node.board.set(pod.uid.clone(), entry(pod, ready(false)));
    }
    pass(1000).await;
    let tries = node.server.calls().len();
    assert!(tries < 40, "one call at a time looks for it: {tries}");
    node.server.set_away(false);
    // The watch is heard first.
    node.server
        .put(copy(&plain("other", "Always"), "", &pending()));
    pass(200).await;
    assert_eq!(node.server.calls().len(), PODS);
    for pod in &pods {
        assert!(!is_ready(&node.server.status(&pod.uid)));
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_calls_at_once_and_pods_in_the_order_of_their_changes() {
    let node = Node::start(3);
    let names: Vec<String> = (0..12)
        .map(|number| format!("p{:02}", 11 - number))
        .collect();
    for name in &names {
        let pod = plain(name, "Always");
        node.server.put(copy(&pod, "", &pending()));
        node.board.set(pod.uid.clone(), entry(&pod, runs()));
    }
    pass(1000).await;
    let calls = node.server.calls();
    let order: Vec<_> = calls.iter().map(|(_, call)| &call[6..9]).collect();
    assert_eq!(order, names);
    assert_eq!(node.server.most(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refused_status_is_tried_again_and_one_of_a_gone_pod_is_not() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    node.server.refuse(CallErrorKind::Later(None));
    node.server
        .refuse(CallErrorKind::Later(Some(Duration::from_secs(7))));
    node.board.set(web.uid.clone(), entry(&web, ready(false)));
    pass(60_000).await;
    let times: Vec<_> = node.server.calls().into_iter().map(|(at, _)| at).collect();
    assert_eq!(times.len(), 3);
    assert_eq!((times[1] - times[0], times[2] - times[1]), (210, 7010));
    assert!(!is_ready(&node.server.status(&web.uid)));

    for kind in [CallErrorKind::NotFound, CallErrorKind::OtherUid] {
        node.server.refuse(kind);
        node.board.set(web.uid.clone(), entry(&web, ready(true)));
        pass(600_000).await;
        assert_eq!(node.server.calls().len(), 1);
        node.board.set(web.uid.clone(), entry(&web, ready(false)));
        pass(600_000).await;
        assert_eq!(node.server.calls(), [], "there is no such pod");
        // The watch knows of it after all.
        node.server
            .write(&web.uid, &json!({"nominatedNodeName": format!("{kind:?}")}));
        node.board.set(web.uid.clone(), entry(&web, ready(true)));
        pass(1000).await;
        assert!(is_ready(&node.server.status(&web.uid)));
        node.board.set(web.uid.clone(), entry(&web, ready(false)));
        pass(1000).await;
        node.server.calls();
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_wrote_is_put_right_but_not_for_ever_at_once() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    let not_ready =
        json!({"conditions": [{"type": "Ready", "status": "False", "reason": "NodeLost"}]});
    node.server.write(&web.uid, &not_ready);
    pass(20).await;
    assert!(is_ready(&node.server.status(&web.uid)));
    assert_eq!(node.server.calls().len(), 1);
    for _ in 0..20 {
        node.server.write(&web.uid, &not_ready);
        pass(1000).await;
    }
    let calls = node.server.calls().len();
    assert!((1..=3).contains(&calls), "{calls}");
    pass(20_000).await;
    assert!(is_ready(&node.server.status(&web.uid)));
    // Our own news does not wait for that.
    node.server.calls();
    node.server.write(&web.uid, &not_ready);
    pass(20).await;
    node.board.set(
        web.uid.clone(),
        entry(&web, status(Phase::Running, Vec::new())),
    );
    pass(20).await;
    assert_eq!(node.server.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restored_api_server_gets_the_newest_again() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    let backup = node.server.stored(&web.uid).unwrap();
    node.board.set(web.uid.clone(), entry(&web, ready(false)));
    node.server.set_echo(None);
    pass(100).await;
    node.server.calls();
    // Its versions start again from an older one.
    node.server.api.set(
        web.uid.clone(),
        ApiPod {
            resource_version: "1".into(),
            ..backup
        },
    );
    pass(1000).await;
    assert_eq!(node.server.calls(), [], "it may be old news of the watch");
    pass(60_000).await;
    assert_eq!(node.server.calls().len(), 1);
    pass(3_600_000).await;
    let calls = node.server.calls().len();
    assert!(
        calls <= 12,
        "a watch that tells nothing costs little: {calls}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_static_pod_goes_to_its_mirror_pod() {
    let node = Node::start(4);
    let file = from_file("web", "x");
    node.board.set(file.uid.clone(), entry(&file, runs()));
    pass(60_000).await;
    assert_eq!(node.server.calls(), [], "there is nothing to write to");
    node.server.put(mirror_of(&file, "m1", "", &pending()));
    pass(50).await;
    assert_eq!(node.server.status(&"m1".into())["phase"], "Running");
    assert_eq!(node.server.calls().len(), 1);
    // Another mirror pod gets all of it again.
    node.server.put(mirror_of(&file, "m2", "", &pending()));
    node.server.api.remove(&"m1".into());
    pass(50).await;
    let shown = node.server.status(&"m2".into());
    assert_eq!(shown["phase"], "Running");
    assert_eq!(
        shown["containerStatuses"][0]["containerID"],
        "containerd://c1"
    );
    assert_eq!(shown["hostIP"], "192.168.0.1");
}

#[tokio::test(start_paused = true)]
async fn the_mirror_pod_of_a_replaced_pod_is_not_told_of_its_successor() {
    let node = Node::start(4);
    let (old, new) = (from_file("web", "x"), from_file("web", "z"));
    node.board.set(old.uid.clone(), entry(&old, runs()));
    node.server.put(mirror_of(&old, "m1", "", &pending()));
    pass(50).await;
    assert_eq!(node.server.calls().len(), 1);
    node.board.remove(&old.uid);
    let mut next = entry(&new, ready(false));
    let history = std::sync::Arc::make_mut(&mut next.history);
    history.replaced = Some(ReplacedPod {
        uid: old.uid.clone(),
        at: jiff::Timestamp::UNIX_EPOCH,
    });
    node.board.set(new.uid.clone(), next);
    pass(60_000).await;
    assert_eq!(node.server.calls(), [], "it shows the old one to the end");
    node.server.put(mirror_of(&new, "m2", "", &pending()));
    node.server.api.remove(&"m1".into());
    pass(50).await;
    assert_eq!(node.server.status(&"m2".into())["phase"], "Running");
}

#[tokio::test(start_paused = true)]
async fn what_all_statuses_show_goes_to_all_when_it_changes() {
    let node = Node::start(4);
    let (web, other) = (
        running_pod(&node, "web").await,
        running_pod(&node, "other").await,
    );
    let context = StatusContext {
        host_ips: std::sync::Arc::from([[10, 1, 1, 1].into()]),
        runtime: "containerd".into(),
    };
    node.context.send_replace(context);
    pass(100).await;
    for pod in [&web, &other] {
        assert_eq!(
            node.server.status(&pod.uid)["hostIPs"],
            json!([{"ip": "10.1.1.1"}])
        );
    }
    assert_eq!(node.server.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_back_under_its_name_is_another_pod() {
    let node = Node::start(4);
    let web = running_pod(&node, "web").await;
    node.board.remove(&web.uid);
    node.server.api.remove(&web.uid);
    let spec = "{containers: [{name: a, image: x}]}";
    let new = crate::test_objects::pod(web.source, "web", "uid-new", spec);
    node.server.put(copy(&new, "", &pending()));
    // A late word of the old one.
    node.board.set(web.uid.clone(), entry(&web, ready(false)));
    node.board.set(new.uid.clone(), entry(&new, ready(true)));
    pass(100).await;
    assert!(is_ready(&node.server.status(&new.uid)));
    assert_eq!(node.server.calls().len(), 1);
}
