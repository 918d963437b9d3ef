//! A rule that restarts all containers in place (KEP-5532).

use rubelet_api::{
    container::RestartAction::RestartAllContainers,
    pod::{Pod, RestartPolicy::*},
};

use super::build::*;
use crate::Step;

fn pod_with_rule() -> Pod {
    let mut pod = pod(Never, &["i"], &["a", "b"]);
    let b = &mut pod.spec.containers[1];
    b.restart_policy = Some(Never);
    b.restart_rules = vec![rule(RestartAllContainers, &[88])];
    pod
}

#[test]
fn all_is_stopped_then_removed_the_cause_last_and_begins_again_in_the_same_sandbox() {
    let pod = pod_with_rule();
    let mut node = Node::new();
    let all_restarting = |node: &Node| {
        let status = node.status.as_ref().unwrap();
        conditions(status).pop().unwrap()
    };

    let (steps, _) = node.in_sandbox(&pod, "i=exit:0 a=run b=run");
    assert!(steps.is_empty());
    assert_eq!(all_restarting(&node), "-AllContainersRestarting");

    let (steps, said) = node.in_sandbox(&pod, "i=exit:0 a=run b=exit:88");
    assert_eq!(steps, ["kill a0"]);
    assert_eq!(said, "Running i:Completed(0) a:Running b:Error(88)");
    assert_eq!(
        all_restarting(&node),
        "+AllContainersRestarting RestartAllContainersStarted container exited with restart policy rule"
    );

    let (steps, said) = node.in_sandbox(&pod, "i=exit:0 a=exit:137 b=exit:88");
    assert_eq!(steps, ["note restart of b", "remove a0,i0,b0"]);
    assert_eq!(said, "Running i:Completed(0) a:Error(137) b:Error(88)");

    let (steps, said) = node.in_sandbox(&pod, "");
    assert_eq!(steps, ["start i in s0"]);
    assert_eq!(
        said,
        "Running i:RestartingAllContainers a:RestartingAllContainers b:RestartingAllContainers"
    );
    assert_eq!(all_restarting(&node), "-AllContainersRestarting");

    let (_, said) = node.in_sandbox(&pod, "i#1=run");
    assert_eq!(
        said,
        "Pending i:Running a:PodInitializing b:PodInitializing"
    );
    let status = node.status.clone().unwrap();
    let last = |name: &str| {
        let end = status.container(name).unwrap().last_state.clone().unwrap();
        (end.reason.to_string(), end.exit_code)
    };
    assert_eq!(last("b"), ("Error".to_owned(), 88));
    assert_eq!(last("a"), ("RestartingAllContainers".to_owned(), 137));
    let (_, said) = node.in_sandbox(&pod, "i#1=exit:0 a#1=run b#1=run");
    assert_eq!(said, "Running i:Completed(0) a:Running b:Running");
}

#[test]
fn logs_stay_so_that_the_count_of_restarts_goes_on() {
    let pod = pod_with_rule();
    let observed = seen(
        vec![sandbox(&pod, 0, true)],
        records("i=exit:0 a=exit:0 b=exit:88"),
    );
    let plan = Node::new().plan(&pod, &observed, 100);
    let Step::RemoveContainers(dead) = &plan.steps[1] else {
        panic!("{plan:?}");
    };
    assert!(dead.iter().all(|one| one.keep_log));
}

#[test]
fn a_pod_that_restarts_again_and_again_backs_off() {
    let pod = pod_with_rule();
    let mut node = Node::new();
    let b = pod.spec.containers[1].clone();
    let max = std::time::Duration::from_secs(300);
    node.history.note_restart(&b, at(20), at(21), max);
    let observed = seen(
        vec![sandbox(&pod, 0, true)],
        records("i=exit:0 a=run b=exit:88"),
    );
    let plan = node.plan(&pod, &observed, 32);
    assert_eq!((short(&plan), plan.wake_at), (vec![], Some(at(40))));
    let plan = node.plan(&pod, &observed, 40);
    assert_eq!(short(&plan), ["kill a0"]);
}

#[test]
fn ephemeral_containers_and_other_exit_codes_are_left_alone() {
    let pod = pod_with_rule();
    let (steps, _) = Node::new().in_sandbox(&pod, "i=exit:0 a=run b=exit:87");
    assert!(steps.is_empty(), "{steps:?}");
}
