//! How a pod ends.

use std::time::Duration;

use rubelet_api::pod::RestartPolicy::*;

use super::build::*;
use crate::Target;

#[test]
fn a_pod_that_is_no_longer_wanted_is_stopped_then_removed_then_cleaned_up() {
    let pod = pod(Always, &[], &["a", "b"]);
    let mut node = Node::new();
    node.target = Target::Remove {
        grace: Duration::from_secs(5),
    };
    let running_pod = seen(
        vec![sandbox(&pod, 0, true)],
        vec![found("a", 0, running()), found("b", 0, exited(0))],
    );
    let plan = node.plan(&pod, &running_pod, 100);
    assert_eq!(short(&plan), ["kill a0", "stop s0"]);
    let crate::Step::KillContainers(kills) = &plan.steps[0] else {
        panic!()
    };
    assert_eq!(kills[0].grace, Duration::from_secs(5));

    let stopped = seen(
        vec![sandbox(&pod, 0, false)],
        vec![found("a", 0, exited(143)), found("b", 0, exited(0))],
    );
    let plan = node.plan(&pod, &stopped, 101);
    assert_eq!(short(&plan), ["remove b0,a0", "remove s0"]);
    assert!(!plan.finished);

    let plan = node.plan(&pod, &seen(vec![], vec![]), 102);
    assert_eq!(
        (short(&plan), plan.finished),
        (vec!["clean up".to_owned()], true)
    );
}

#[test]
fn a_failed_removal_is_tried_again_after_a_wait() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    node.target = Target::Remove {
        grace: Duration::from_secs(5),
    };
    node.history
        .note_teardown_failed("FailedKillPod", "no", at(100));
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![]);
    let plan = node.plan(&pod, &observed, 100);
    assert_eq!((short(&plan), plan.wake_at), (vec![], Some(at(101))));
    assert_eq!(short(&node.plan(&pod, &observed, 101)), ["stop s0"]);
}

#[test]
fn a_terminal_phase_sticks_and_nothing_starts_again() {
    let pod = pod(Never, &[], &["a"]);
    let mut node = Node::new();
    let ended = seen(vec![sandbox(&pod, 0, true)], vec![found("a", 0, exited(0))]);
    assert_eq!(
        node.plan(&pod, &ended, 100).status.phase.as_str(),
        "Succeeded"
    );
    let plan = node.plan(&pod, &seen(vec![], vec![]), 200);
    assert_eq!(
        (short(&plan), plan.status.phase.as_str()),
        (vec![], "Succeeded")
    );
    assert_eq!(said(&plan.status), "Succeeded a:Completed(0)");
}

#[test]
fn a_pod_past_its_deadline_fails_and_is_stopped() {
    let mut pod = pod(Always, &[], &["a"]);
    pod.spec.active_deadline = Some(Duration::from_secs(60));
    // With none at all the hooks would not run.
    pod.spec.termination_grace_period = Duration::ZERO;
    let mut node = Node::new();
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![found("a", 0, running())]);
    node.plan(&pod, &observed, 0);
    assert_eq!(node.plan(&pod, &observed, 1).wake_at, Some(at(60)));
    let plan = node.plan(&pod, &observed, 60);
    assert_eq!(short(&plan), ["kill a0", "stop s0"]);
    let crate::Step::KillContainers(kills) = &plan.steps[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(kills[0].grace, Duration::from_secs(1));
    assert_eq!(
        (plan.status.phase.as_str(), &*plan.status.reason),
        ("Running", ""),
        "it has not ended while it runs"
    );
    let gone = seen(
        vec![sandbox(&pod, 0, false)],
        vec![found("a", 0, exited(143))],
    );
    let plan = node.plan(&pod, &gone, 61);
    assert_eq!(short(&plan), ["remove volumes"]);
    assert_eq!(
        (plan.status.phase.as_str(), &*plan.status.reason),
        ("Failed", "DeadlineExceeded")
    );
}

#[test]
fn a_container_that_never_ran_has_an_end_when_its_pod_has_failed() {
    for (init, records_of_pod, expected) in [
        (&[][..], "", "a:ContainerStatusUnknown(137)"),
        (
            &["i"],
            "i=exit:0",
            "i:Completed(0) a:ContainerStatusUnknown(137)",
        ),
        // A failed init container says why the others did not run.
        (&["i"], "i=exit:1", "i:Error(1) a:PodInitializing"),
        (
            &["i"],
            "",
            "i:ContainerStatusUnknown(137) a:PodInitializing",
        ),
    ] {
        let mut pod = pod(Always, init, &["a"]);
        pod.spec.active_deadline = Some(Duration::from_secs(60));
        let mut node = Node::new();
        let records = || records(records_of_pod);
        node.plan(&pod, &seen(vec![sandbox(&pod, 0, true)], records()), 0);
        let plan = node.plan(&pod, &seen(vec![sandbox(&pod, 0, true)], records()), 60);
        assert!(short(&plan).contains(&"stop s0".to_owned()), "{plan:?}");
        assert!(!said(&plan.status).contains("Unknown"), "it may still run");
        for at in [61, 62] {
            let plan = node.plan(&pod, &seen(vec![sandbox(&pod, 0, false)], records()), at);
            assert_eq!(
                said(&plan.status),
                format!("Failed {expected}"),
                "{records_of_pod}"
            );
        }
    }
}
