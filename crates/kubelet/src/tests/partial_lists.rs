//! Lists that leave out what is there: what an earlier agent knew is not made a second time.

use std::{fs, time::Duration};

use rubelet_sim::{Behavior, Exec, ListFault, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

const POD: &str = "\
    initContainers: [{name: init, image: 'app:2'}], \
    containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:1'}]";
const LISTS: [&str; 2] = ["ListPodSandbox", "ListContainers"];

/// A node whose pod has its second sandbox and the third instance of a container, so that no name
/// of a first one is taken in the runtime.
async fn node_with_past() -> (Node, String) {
    let node = Node::new();
    let soon = Behavior::exits(Duration::from_millis(20), 0);
    node.sim.on_container("init", soon);
    let uid = node.want("web", POD);
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
    // Records are written, and what is left of the past is removed.
    sleep(seconds(90)).await;
    (node, uid)
}

/// How often anything was made for the pod.
fn made(node: &Node, uid: &str) -> [usize; 5] {
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
    assert_eq!(made(node, uid), before, "{what}\n{}", node.account());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_starts_with_empty_lists_finds_what_the_one_before_it_knew() {
    for lists in [&LISTS[..1], &LISTS[1..], &LISTS] {
        for times in [1, 2, 3, 7] {
            let (mut node, uid) = node_with_past().await;
            let before = made(&node, &uid);
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
async fn an_agent_that_starts_with_holes_in_all_lists_makes_nothing_twice() {
    for seed in 0..60 {
        let (mut node, uid) = node_with_past().await;
        let before = made(&node, &uid);
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
async fn an_agent_that_lost_its_record_does_not_believe_one_list_that_lacks_what_runs() {
    for damage in [None, Some("not a record")] {
        for lists in [&LISTS[..1], &LISTS[1..], &LISTS] {
            let (mut node, uid) = node_with_past().await;
            let before = made(&node, &uid);
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

/// Only what was here before is looked at twice.
#[tokio::test(start_paused = true)]
async fn the_first_start_of_a_pod_waits_for_no_second_list() {
    let node = Node::new();
    sleep(seconds(20)).await;
    let uid = node.want("web", "containers: [{name: a, image: 'app:1'}]");
    let runs = |node: &Node| node.sim.running(&uid, "a").is_some();
    let took = node.within(seconds(5), "its start", runs).await;
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_removed_while_no_agent_ran_is_made_again_at_once() {
    let (mut node, uid) = node_with_past().await;
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

/// The record was written before the container was made: its number is taken.
#[tokio::test(start_paused = true)]
async fn what_was_made_after_the_last_record_is_not_made_twice() {
    for name in ["a", "b"] {
        for call in ["CreateContainer", "StartContainer"] {
            let (mut node, uid) = node_with_past().await;
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

/// The runtime has it, and its name with its number, though it never said so.
#[tokio::test(start_paused = true)]
async fn a_sandbox_that_was_being_made_is_not_made_twice() {
    for times in [1, 3, 7] {
        let (mut node, uid) = node_with_past().await;
        let made = node
            .sim
            .hang_after_effect("RunPodSandbox", Subject::pod(&uid));
        let before = node.sim.sandboxes(&uid);
        for sandbox in &before {
            node.sim.kill_sandbox(sandbox);
        }
        made.reached().await;
        node.kill().await;
        made.release();
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

/// A hook may take long, and meanwhile nothing else of the pod is recorded.
#[tokio::test(start_paused = true)]
async fn a_container_whose_hook_is_under_way_is_not_made_twice() {
    let mut node = Node::new();
    node.sim.on_exec(|_, _| Exec::exits(0).after(seconds(20)));
    let spec = "containers: [{name: a, image: 'app:1', \
                lifecycle: {postStart: {exec: {command: [start]}}}}]";
    let uid = node.want("web", spec);
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
