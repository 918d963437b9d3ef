//! The state examples of the Kubernetes page on the pod lifecycle, and restarts that were asked
//! for.

use std::time::Duration;

use rubelet_api::pod::RestartPolicy::{self, *};

use super::build::*;
use crate::{
    Step,
    intents::{Eviction, RestartIntent},
    reason::StartCause,
};

#[test]
fn the_examples_of_the_pod_lifecycle_page() {
    let rows: [(&[&str], &str, [&str; 3]); 7] = [
        // One container exits with success.
        (&["a"], "a=exit:0", ["Running", "Succeeded", "Succeeded"]),
        // One container exits with failure.
        (&["a"], "a=exit:1", ["Running", "Running", "Failed"]),
        // Of two, the first exits with failure.
        (
            &["a", "b"],
            "a=exit:1 b=run",
            ["Running", "Running", "Running"],
        ),
        // Then the second exits as well.
        (
            &["a", "b"],
            "a=exit:1 b=exit:0",
            ["Running", "Running", "Failed"],
        ),
        (
            &["a", "b"],
            "a=exit:0 b=exit:0",
            ["Running", "Succeeded", "Succeeded"],
        ),
        // One runs out of memory.
        (&["a"], "a=oom", ["Running", "Running", "Failed"]),
        (
            &["a", "b"],
            "a=oom b=run",
            ["Running", "Running", "Running"],
        ),
    ];
    for (containers, records, phases) in rows {
        for (policy, phase) in [Always, OnFailure, Never].into_iter().zip(phases) {
            let pod = pod(policy, &[], containers);
            let (_, said) = Node::new().in_sandbox(&pod, records);
            let found = said.split(' ').next().unwrap();
            assert_eq!(found, phase, "{records} {policy:?}: {said}");
        }
    }
}

#[test]
fn when_the_disk_dies_all_containers_are_gone_and_a_pod_that_never_restarts_has_failed() {
    let rows: [(RestartPolicy, &str, &[&str]); 3] = [
        (Always, "Running a:ContainerCreating", &["sandbox 0"]),
        (OnFailure, "Running a:ContainerCreating", &["sandbox 0"]),
        (Never, "Failed a:ContainerStatusUnknown(137)", &[]),
    ];
    for (policy, status, steps) in rows {
        let pod = pod(policy, &[], &["a"]);
        let mut node = Node::new();
        node.in_sandbox(&pod, "a=run");
        let plan = node.plan(&pod, &seen(vec![], vec![]), 200);
        assert_eq!(said(&plan.status), status, "{policy:?}");
        assert_eq!(short(&plan), steps, "{policy:?}");
    }
}

#[test]
fn a_job_that_the_runtime_lost_track_of_is_stopped_and_not_run_again() {
    let pod = pod(Never, &[], &["a"]);
    let mut node = Node::new();
    node.in_sandbox(&pod, "a=run");
    let (steps, said) = node.in_sandbox(&pod, "a=unknown");
    assert_eq!(steps, ["kill a0", "stop s0"]);
    assert_eq!(said, "Failed a:ContainerStatusUnknown(137)");
}

#[test]
fn a_restart_that_was_asked_for_replaces_that_instance_once_and_without_back_off() {
    for policy in [Always, OnFailure, Never] {
        let pod = pod(policy, &[], &["a", "b"]);
        let mut node = Node::new();
        let a = pod.spec.containers[0].clone();
        let max = Duration::from_secs(300);
        node.history.note_restart(&a, at(25), at(29), max);
        node.history.note_restart(&a, at(29), at(29), max);
        node.intents.restarts.insert(
            "a".into(),
            RestartIntent {
                instance: Some("a0".into()),
                at: at(31),
            },
        );
        let steps = node.in_sandbox(&pod, "a=run b=run").0;
        assert_eq!(steps, ["kill a0", "start a #1 in s0"], "{policy:?}");
        let steps = node.in_sandbox(&pod, "a=exit:0 b=run").0;
        assert_eq!(steps, ["start a #1 in s0"], "{policy:?}");
        let observed = seen(vec![sandbox(&pod, 0, true)], records("a=exit:1 b=run"));
        let plan = node.plan(&pod, &observed, 31);
        assert!(
            matches!(&plan.steps[0], Step::StartContainer { cause, .. } if *cause == StartCause::Requested),
            "{plan:?}"
        );
        let steps = node.in_sandbox(&pod, "a#1=run a=exit:143 b=run").0;
        assert!(steps.is_empty(), "{policy:?} {steps:?}");
    }
}

#[test]
fn a_restart_that_was_asked_for_does_not_wait_for_what_failed_before() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    let a = pod.spec.containers[0].clone();
    node.history
        .note_start_failed(&a, "ErrImagePull", "no", at(99));
    assert!(node.in_sandbox(&pod, "").0.is_empty());
    let intent = RestartIntent {
        instance: None,
        at: at(99) + Duration::from_millis(1),
    };
    node.intents.restarts.insert("a".into(), intent);
    assert_eq!(node.in_sandbox(&pod, "").0, ["start a in s0"]);
    // The next failure is waited for again.
    node.history
        .note_start_failed(&a, "ErrImagePull", "no", at(100));
    assert!(node.in_sandbox(&pod, "").0.is_empty());
}

#[test]
fn an_eviction_has_its_own_grace_where_that_is_shorter() {
    for (asked, seconds) in [(None, 30), (Some(1), 1), (Some(0), 1), (Some(60), 30)] {
        let pod = pod(Always, &[], &["a"]);
        let mut node = Node::new();
        node.in_sandbox(&pod, "a=run");
        node.intents.eviction = Some(Eviction {
            reason: "Evicted".into(),
            message: "low".into(),
            grace: asked.map(Duration::from_secs),
        });
        let observed = seen(vec![sandbox(&pod, 0, true)], records("a=run"));
        let plan = node.plan(&pod, &observed, 200);
        let grace = plan.steps.iter().find_map(|step| match step {
            Step::KillContainers(kills) => Some(kills[0].grace),
            _ => None,
        });
        assert_eq!(grace, Some(Duration::from_secs(seconds)), "{asked:?}");
    }
}

#[test]
fn dead_containers_of_a_pod_that_has_ended_go_when_the_node_needs_their_space() {
    let pod = pod(Never, &[], &["a"]);
    let mut node = Node::new();
    node.in_sandbox(&pod, "a=exit:3");
    let ended = "Failed a:Error(3)";
    node.intents.discard_containers = true;
    let stopped = |records: &str| seen(vec![sandbox(&pod, 0, false)], self::records(records));
    let plan = node.plan(&pod, &stopped("a=exit:3"), 200);
    assert!(
        short(&plan).contains(&"remove a0".to_owned()),
        "{:?}",
        short(&plan)
    );
    assert_eq!(said(&plan.status), ended);
    // Nothing is left that would show the exit, and nothing starts again.
    let plan = node.plan(&pod, &stopped(""), 300);
    assert_eq!(said(&plan.status), ended);
    assert!(
        !plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::RemoveContainers(_)))
    );
    let mut running = Node::new();
    running.intents.discard_containers = true;
    let (steps, _) = running.in_sandbox(&pod, "a=run");
    assert_eq!(steps, [""; 0], "a pod that runs keeps its containers");
}
