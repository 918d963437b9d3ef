//! Ends that the kernel has told, with their exit codes, and the runtime has not.

use rubelet_api::{
    container::TerminationMessagePolicy,
    pod::{Pod, RestartPolicy},
};

use super::build::*;
use crate::{
    ObservedContainer, ObservedPod, PodPlan, ProcessState, Target,
    observed::{ContainerPhase, Exit},
};

fn always() -> Pod {
    pod(RestartPolicy::Always, &[], &["a"])
}

/// `a`, which runs by the runtime's word and has ended with this code by the kernel's.
fn ended(code: i32) -> ObservedContainer {
    let ContainerPhase::Exited(exit) = exited(code) else {
        panic!("it has ended");
    };
    ObservedContainer {
        process: ProcessState::Gone,
        kernel_exit: Some(Box::new(exit)),
        ..found("a", 0, running())
    }
}

fn with(container: ObservedContainer) -> ObservedPod {
    seen(vec![sandbox(&always(), 0, true)], vec![container])
}

fn plan_of(pod: &Pod, container: ObservedContainer) -> PodPlan {
    Node::new().plan(pod, &with(container), 100)
}

#[test]
fn the_status_says_the_end_and_the_steps_wait_for_the_runtime() {
    let pod = always();
    let plan = plan_of(&pod, ended(1));
    assert_eq!(said(&plan.status), "Running a:Error(1)");
    assert!(!plan.status.containers[0].ready);
    assert_eq!(short(&plan), ["precreate a #1 after a0 in s0"]);
    let plan = plan_of(&pod, ended(137));
    assert_eq!(said(&plan.status), "Running a:Error(137)");
}

#[test]
fn a_process_without_a_known_exit_code_has_not_ended_for_the_status() {
    let gone = ObservedContainer {
        kernel_exit: None,
        ..ended(1)
    };
    assert_eq!(said(&plan_of(&always(), gone).status), "Running a:Running");
}

#[test]
fn what_the_runtime_has_told_counts_more() {
    let told = ObservedContainer {
        phase: exited(0),
        ..ended(1)
    };
    let plan = plan_of(&always(), told);
    assert!(
        said(&plan.status).ends_with("(0)"),
        "{}",
        said(&plan.status)
    );
}

#[test]
fn a_kill_waits_for_the_runtime_where_memory_may_have_been_short() {
    let mut pod = always();
    pod.spec.containers[0].resources.limits.memory = Some(1024);
    let plan = plan_of(&pod, ended(137));
    assert_eq!(said(&plan.status), "Running a:Running");
    let plan = plan_of(&pod, ended(1));
    assert_eq!(said(&plan.status), "Running a:Error(1)", "that was no kill");
}

#[test]
fn a_message_that_is_taken_from_the_log_waits_for_the_whole_log() {
    let mut pod = always();
    pod.spec.containers[0].termination_message_policy =
        TerminationMessagePolicy::FallbackToLogsOnError;
    assert_eq!(said(&plan_of(&pod, ended(1)).status), "Running a:Running");
    let mut with_message = ended(1);
    with_message.kernel_exit = with_message.kernel_exit.map(|exit| {
        Box::new(Exit {
            message: "out of coffee".into(),
            ..*exit
        })
    });
    assert_eq!(
        said(&plan_of(&pod, with_message).status),
        "Running a:Error(1)"
    );
}

#[test]
fn the_end_of_a_pod_waits_for_the_runtime() {
    let pod = pod(RestartPolicy::Never, &[], &["a"]);
    assert_eq!(said(&plan_of(&pod, ended(1)).status), "Running a:Running");
    let pod = always();
    let removed = Target::Remove {
        grace: std::time::Duration::from_secs(9),
    };
    let mut node = Node::new();
    node.target = removed;
    let plan = node.plan(&pod, &with(ended(1)), 100);
    assert_eq!(said(&plan.status), "Running a:Running");
}
