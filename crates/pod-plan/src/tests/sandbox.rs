//! When a sandbox is made or replaced.

use rubelet_api::{container::DefinitionHash, pod::RestartPolicy::*};

use super::build::*;
use crate::reason::PlanReason;

#[test]
fn a_new_pod_gets_a_sandbox_and_is_pending() {
    let pod = pod(Always, &[], &["a"]);
    let plan = Node::new().plan(&pod, &seen(vec![], vec![]), 0);
    assert_eq!(short(&plan), ["sandbox 0"]);
    assert_eq!(plan.why, [PlanReason::NoSandbox]);
    assert_eq!(said(&plan.status), "Pending a:ContainerCreating");
}

#[test]
fn a_sandbox_that_does_not_fit_is_replaced_with_all_that_runs_in_it() {
    let pod = pod(Always, &[], &["a"]);
    let mut host = pod.clone();
    host.spec.host_network = true;
    let mut edited = pod.clone();
    edited.sandbox_definition = Some(DefinitionHash("v1:t".into()));
    let no_address = {
        let mut one = sandbox(&pod, 0, true);
        one.ips.clear();
        one
    };
    for (name, wanted, sandboxes, steps) in [
        (
            "not ready",
            &pod,
            vec![sandbox(&pod, 0, false)],
            vec!["kill a0", "stop s0", "sandbox 1"],
        ),
        (
            "two ready",
            &pod,
            vec![sandbox(&pod, 0, true), sandbox(&pod, 1, true)],
            vec!["kill a0", "stop s1,s0", "sandbox 2"],
        ),
        (
            "network",
            &host,
            vec![sandbox(&pod, 0, true)],
            vec!["kill a0", "stop s0", "sandbox 1"],
        ),
        (
            "no address",
            &pod,
            vec![no_address],
            vec!["kill a0", "stop s0", "sandbox 1"],
        ),
        (
            "definition",
            &edited,
            vec![sandbox(&pod, 0, true)],
            vec!["kill a0", "stop s0", "sandbox 1"],
        ),
    ] {
        let observed = seen(sandboxes, vec![found("a", 0, running())]);
        let plan = Node::new().plan(wanted, &observed, 100);
        assert_eq!(short(&plan), steps, "{name}");
    }
}

#[test]
fn an_old_sandbox_beside_a_ready_one_changes_nothing() {
    let pod = pod(Always, &[], &["a"]);
    let mut live = found("a", 1, running());
    live.sandbox = "s1".into();
    let observed = seen(
        vec![sandbox(&pod, 0, false), sandbox(&pod, 1, true)],
        vec![live],
    );
    let plan = Node::new().plan(&pod, &observed, 100);
    // It holds no container any more, so that its record is removed.
    assert_eq!(short(&plan), ["remove s0"]);
    assert_eq!(said(&plan.status), "Running a:Running");
}

#[test]
fn a_sandbox_of_another_kubelet_is_adopted_whatever_it_was_made_from() {
    let pod = pod(Always, &[], &["a"]);
    let mut theirs = sandbox(&pod, 0, true);
    theirs.definition = None;
    let mut container = found("a", 3, running());
    container.definition = None;
    let plan = Node::new().plan(&pod, &seen(vec![theirs], vec![container]), 100);
    assert_eq!(short(&plan), [""; 0]);
    assert_eq!(plan.status.containers[0].restart_count, 3);
}

#[test]
fn a_pod_that_never_restarts_gets_no_second_sandbox_once_a_container_was_made() {
    let pod = pod(Never, &[], &["a"]);
    let observed = seen(
        vec![sandbox(&pod, 0, false)],
        vec![found("a", 0, exited(1))],
    );
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(short(&plan), ["remove volumes"]);
    assert_eq!(said(&plan.status), "Failed a:Error(1)");
    let plan = Node::new().plan(&pod, &seen(vec![sandbox(&pod, 0, false)], vec![]), 100);
    assert_eq!(short(&plan), ["stop s0", "sandbox 1"]);
}

#[test]
fn a_pod_whose_containers_all_succeeded_gets_no_second_sandbox() {
    let pod = pod(OnFailure, &[], &["a", "b"]);
    let containers = |b| vec![found("a", 0, exited(0)), found("b", 0, exited(b))];
    let plan = Node::new().plan(
        &pod,
        &seen(vec![sandbox(&pod, 0, false)], containers(0)),
        100,
    );
    assert_eq!(
        (short(&plan), plan.status.phase.as_str()),
        (vec!["remove volumes".to_owned()], "Succeeded")
    );
    let plan = Node::new().plan(
        &pod,
        &seen(vec![sandbox(&pod, 0, false)], containers(1)),
        100,
    );
    assert_eq!(short(&plan), ["stop s0", "sandbox 1"]);
}

#[test]
fn a_failed_sandbox_is_tried_again_after_a_growing_wait() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    let nothing = seen(vec![], vec![]);
    node.history
        .note_sandbox_failed("FailedCreatePodSandBox", "no", at(0));
    let plan = node.plan(&pod, &nothing, 0);
    assert_eq!((short(&plan), plan.wake_at), (vec![], Some(at(1))));
    assert_eq!(short(&node.plan(&pod, &nothing, 1)), ["sandbox 0"]);
    for wait in [2, 4, 8, 10, 10] {
        node.history
            .note_sandbox_failed("FailedCreatePodSandBox", "no", at(0));
        assert_eq!(node.plan(&pod, &nothing, 0).wake_at, Some(at(wait)));
    }
}

#[test]
fn a_sandbox_that_ended_at_once_is_not_replaced_at_once() {
    let pod = pod(Always, &[], &["a"]);
    for (attempt, pause) in [(0, 1), (2, 1), (3, 10), (9, 10)] {
        let made = i64::from(attempt);
        let observed = seen(vec![sandbox(&pod, attempt, false)], vec![]);
        let mut node = Node::new();
        let early = node.plan(&pod, &observed, made + pause - 1);
        assert_eq!(short(&early), [""; 0], "attempt {attempt}");
        assert_eq!(early.wake_at, Some(at(made + pause)), "attempt {attempt}");
        let due = node.plan(&pod, &observed, made + pause);
        let steps = [
            format!("stop s{attempt}"),
            format!("sandbox {}", attempt + 1),
        ];
        assert_eq!(short(&due), steps);
        // The clock was set back: nobody knows when it was made.
        let before = node.plan(&pod, &observed, made - 3600);
        assert_eq!(short(&before), steps);
    }
}

#[test]
fn what_is_left_of_a_start_that_failed_counts_although_it_has_no_time_of_creation() {
    let pod = pod(Always, &[], &["a"]);
    let ended = sandbox(&pod, 0, false);
    let mut left = sandbox(&pod, 1, false);
    left.created_at = at(-1_000_000_000);
    let mut node = Node::new();
    let plan = node.plan(&pod, &seen(vec![ended.clone(), left.clone()], vec![]), 100);
    assert_eq!(short(&plan), ["stop s1", "sandbox 2"]);
    // The one that then works is the newest, whatever the clock said when it was made.
    let mut works = sandbox(&pod, 2, true);
    works.created_at = at(-3600);
    let plan = node.plan(&pod, &seen(vec![ended, left, works], vec![]), 101);
    assert_eq!(short(&plan)[0], "start a in s2");
}

#[test]
fn an_edit_replaces_a_young_sandbox_at_once() {
    let pod = pod(Always, &[], &["a"]);
    let mut edited = pod.clone();
    edited.sandbox_definition = Some(DefinitionHash("v1:t".into()));
    let observed = seen(vec![sandbox(&pod, 5, true)], vec![]);
    let plan = Node::new().plan(&edited, &observed, 5);
    assert_eq!(short(&plan), ["stop s5", "sandbox 6"]);
}
