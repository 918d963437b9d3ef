//! How failed starts are reported and repeated.

use rubelet_api::{container::PullPolicy::*, pod::RestartPolicy};

use super::build::*;
use crate::image::{PullDecision, pull_decision};

#[test]
fn the_pull_policy_decides() {
    for (policy, present, decision) in [
        (Always, true, PullDecision::Pull),
        (Always, false, PullDecision::Pull),
        (IfNotPresent, true, PullDecision::UsePresent),
        (IfNotPresent, false, PullDecision::Pull),
        (Never, true, PullDecision::UsePresent),
        (Never, false, PullDecision::Refuse),
    ] {
        assert_eq!(pull_decision(policy, present), decision);
    }
}

#[test]
fn a_failed_pull_is_shown_first_and_then_its_back_off() {
    let pod = pod(RestartPolicy::Always, &[], &["a"]);
    let mut node = Node::new();
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![]);
    let container = &pod.spec.containers[0];
    node.history
        .note_start_failed(container, "ErrImagePull", "refused", at(0));
    let plan = node.plan(&pod, &observed, 0);
    assert_eq!(said(&plan.status), "Pending a:ErrImagePull");
    assert_eq!(plan.wake_at, Some(at(5)));
    let plan = node.plan(&pod, &observed, 5);
    assert_eq!(said(&plan.status), "Pending a:ImagePullBackOff");
    assert_eq!(plan.wake_at, Some(at(10)));
    assert_eq!(short(&node.plan(&pod, &observed, 10)), ["start a in s0"]);
    for wait in [20, 40, 80, 160, 300, 300] {
        node.history
            .note_start_failed(container, "ErrImagePull", "refused", at(0));
        let history = &node.history.containers["a"];
        assert_eq!(history.failure.as_ref().unwrap().delay.as_secs(), wait);
    }
}

#[test]
fn an_edit_ends_the_wait_for_a_bad_image() {
    let mut pod = pod(RestartPolicy::Always, &[], &["a"]);
    let mut node = Node::new();
    let container = &pod.spec.containers[0];
    node.history
        .note_start_failed(container, "InvalidImageName", "bad", at(0));
    pod.spec.containers[0].definition =
        Some(rubelet_api::container::DefinitionHash("v1:new".into()));
    node.history
        .retain(&pod.spec.all_containers().collect::<Vec<_>>());
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![]);
    assert_eq!(short(&node.plan(&pod, &observed, 0)), ["start a in s0"]);
}

#[test]
fn each_reason_of_a_failed_start_is_reported_as_it_is() {
    let pod = pod(RestartPolicy::Always, &[], &["a"]);
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![]);
    for reason in [
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    ] {
        let mut node = Node::new();
        node.history
            .note_start_failed(&pod.spec.containers[0], reason, "why", at(0));
        let plan = node.plan(&pod, &observed, 0);
        assert_eq!(said(&plan.status), format!("Pending a:{reason}"));
        assert_eq!(plan.wake_at, Some(at(1)));
    }
}
