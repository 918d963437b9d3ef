//! Incomplete lists: what an earlier agent knew is not created a second time.

use std::{fs, time::Duration};

use rubelet_sim::{Behavior, Exec, ListFault, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

const POD: &str = "\
    initContainers: [{name: init, image: 'app:2'}], \
    containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:1'}]";
const LISTS: [&str; 2] = ["ListPodSandbox", "ListContainers"];

/// A node whose pod has its second sandbox and the third instance of a container: the runtime would
/// accept a first one again, because that name is free.
async fn node_with_history() -> (Node, String) {
    let node = Node::new();
    let soon = Behavior::exits(Duration::from_millis(20), 0);
    node.sim.on_container("init", soon);
    let uid = node.apply("web", POD);
    node.until_running().await;
    let first = node.sim.sandboxes(&uid).remove(0);
    node.sim.kill_sandbox(&first);
    let again = |node: &Node| node.calls("RunPodSandbox") == 2 && node.is_running("web");
    node.within(seconds(120), "a second sandbox", again).await;
    for starts in [3, 4] {
        node.kill_container(&uid, "a", 1);
        let again =
            |node: &Node| node.sim.oracle().starts(&uid, "a") == starts && node.is_running("web");
        node.within(seconds(60), "a restart", again).await;
    }
    // By now records are written and old containers are removed.
    sleep(seconds(90)).await;
    (node, uid)
}

/// Counts of starts and creations for the pod.
fn creations(node: &Node, uid: &str) -> [usize; 5] {
    let oracle = node.sim.oracle();
    let starts = ["init", "a", "b"].map(|name| oracle.starts(uid, name));
    let calls = node.calls("RunPodSandbox");
    [
        starts[0],
        starts[1],
        starts[2],
        calls,
        node.calls("CreateContainer"),
    ]
}

async fn assert_adopted(node: &Node, uid: &str, before: [usize; 5], what: &str) {
    sleep(seconds(130)).await;
    node.until_running().await;
    node.assert_never_twice(uid);
    assert_eq!(
        creations(node, uid),
        before,
        "{what}\n{}",
        node.failure_report()
    );
}

#[tokio::test(start_paused = true)]
async fn empty_lists_at_start_do_not_hide_recorded_pods() {
    for lists in [&LISTS[..1], &LISTS[1..], &LISTS] {
        for times in [1, 2, 3, 7] {
            let (mut node, uid) = node_with_history().await;
            let before = creations(&node, &uid);
            node.kill().await;
            for list in lists {
                node.sim.inject_list(ListFault::empty(list).times(times));
            }
            node.start();
            let what = format!("{times} times no {lists:?}");
            assert_adopted(&node, &uid, before, &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn incomplete_lists_at_start_create_nothing_twice() {
    for seed in 0..60 {
        let (mut node, uid) = node_with_history().await;
        let before = creations(&node, &uid);
        node.kill().await;
        for list in LISTS {
            let holes = ListFault::partial(list, 400, seed);
            node.sim.inject_list(holes.times(40));
        }
        node.start();
        assert_adopted(&node, &uid, before, &format!("seed {seed}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_record_one_empty_list_is_not_believed() {
    for damage in [None, Some("not a record")] {
        for lists in [&LISTS[..1], &LISTS[1..], &LISTS] {
            let (mut node, uid) = node_with_history().await;
            let before = creations(&node, &uid);
            node.kill().await;
            match damage {
                None => fs::remove_file(node.record("web")).unwrap(),
                Some(text) => fs::write(node.record("web"), text).unwrap(),
            }
            for list in lists {
                node.sim.inject_list(ListFault::empty(list).times(1));
            }
            node.start();
            let what = format!("{damage:?}, once no {lists:?}");
            assert_adopted(&node, &uid, before, &what).await;
        }
    }
}

/// Only pods of an earlier agent need a second list.
#[tokio::test(start_paused = true)]
async fn the_first_start_of_a_pod_needs_no_second_list() {
    let node = Node::new();
    sleep(seconds(20)).await;
    let uid = node.apply("web", "containers: [{name: a, image: 'app:1'}]");
    let runs = |node: &Node| node.sim.running(&uid, "a").is_some();
    let took = node.within(seconds(5), "its start", runs).await;
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_removed_while_no_agent_ran_is_recreated_at_once() {
    let (mut node, uid) = node_with_history().await;
    node.kill().await;
    for sandbox in node.sim.sandboxes(&uid) {
        node.sim.remove_sandbox_externally(&sandbox);
    }
    node.start();
    let runs = |node: &Node| node.sim.running(&uid, "b").is_some();
    let took = node.within(seconds(5), "a new sandbox", runs).await;
    assert!(took < seconds(2), "{took:?}");
    node.assert_never_twice(&uid);
}

/// The record was written before the container was created: its restart count is taken.
#[tokio::test(start_paused = true)]
async fn what_was_created_after_the_last_record_is_not_created_twice() {
    for name in ["a", "b"] {
        for call in ["CreateContainer", "StartContainer"] {
            let (mut node, uid) = node_with_history().await;
            let hang = node
                .sim
                .hang_after_effect(call, Subject::container(&uid, name));
            node.kill_container(&uid, name, 1);
            hang.reached().await;
            node.kill().await;
            hang.release();
            for list in LISTS {
                node.sim.inject_list(ListFault::empty(list).times(3));
            }
            node.start();
            sleep(seconds(400)).await;
            node.until_running().await;
            node.assert_never_twice(&uid);
            let of_name = node
                .containers(&uid)
                .into_iter()
                .filter(|of| of.name == name);
            let running =
                of_name.filter(|of| node.sim.running(&uid, name).as_ref() == Some(&of.id));
            assert_eq!(running.count(), 1, "{name} killed in {call}");
            assert_eq!(node.calls("RunPodSandbox"), 2, "{name} killed in {call}");
        }
    }
}

/// The runtime has reserved its name and attempt, although the call never returned.
#[tokio::test(start_paused = true)]
async fn a_sandbox_under_creation_is_not_created_twice() {
    for times in [1, 3, 7] {
        let (mut node, uid) = node_with_history().await;
        let created = node
            .sim
            .hang_after_effect("RunPodSandbox", Subject::pod(&uid));
        let before = node.sim.sandboxes(&uid);
        for sandbox in &before {
            node.sim.kill_sandbox(sandbox);
        }
        created.reached().await;
        node.kill().await;
        created.release();
        for sandbox in &before {
            node.sim.remove_sandbox_externally(sandbox);
        }
        for list in LISTS {
            node.sim.inject_list(ListFault::empty(list).times(times));
        }
        node.start();
        sleep(seconds(200)).await;
        node.until_running().await;
        node.assert_never_twice(&uid);
    }
}

/// A hook may take long, and nothing else of the pod is recorded meanwhile.
#[tokio::test(start_paused = true)]
async fn a_container_whose_hook_runs_is_not_created_twice() {
    let mut node = Node::new();
    node.sim.on_exec(|_, _| Exec::exits(0).after(seconds(20)));
    let spec = "containers: [{name: a, image: 'app:1', \
                lifecycle: {postStart: {exec: {command: [start]}}}}]";
    let uid = node.apply("web", spec);
    let runs = |node: &Node| node.sim.running(&uid, "a").is_some();
    node.until("it runs", runs).await;
    sleep(seconds(5)).await;
    node.kill().await;
    for list in LISTS {
        node.sim.inject_list(ListFault::empty(list).times(3));
    }
    node.start();
    sleep(seconds(100)).await;
    node.until_running().await;
    node.assert_never_twice(&uid);
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 1);
}
