//! Instances that are made while the runtime has not told the end of those before them.

use rubelet_api::{
    container::{Container, PullPolicy, RestartAction},
    pod::{Pod, RestartPolicy},
};

use super::build::*;
use crate::{
    ObservedContainer, ObservedPod, PlanReason, PodPlan, ProcessState, observed::ContainerPhase,
};

fn always() -> Pod {
    pod(RestartPolicy::Always, &[], &["a"])
}

/// Instance 0 of `a` as the runtime and the kernel have it.
fn instance(phase: ContainerPhase, process: ProcessState) -> ObservedContainer {
    ObservedContainer {
        process,
        ..found("a", 0, phase)
    }
}

/// Instance 1, which is precreated.
fn made() -> ObservedContainer {
    ObservedContainer {
        precreated_after: Some("a0".into()),
        created_at: at(95),
        ..found("a", 1, ContainerPhase::Created)
    }
}

fn with(containers: Vec<ObservedContainer>) -> ObservedPod {
    seen(vec![sandbox(&always(), 0, true)], containers)
}

fn gone() -> ObservedPod {
    with(vec![instance(running(), ProcessState::Gone)])
}

fn steps(pod: &Pod, observed: &ObservedPod) -> Vec<String> {
    short(&plan_of(pod, observed))
}

fn plan_of(pod: &Pod, observed: &ObservedPod) -> PodPlan {
    Node::new().plan(pod, observed, 100)
}

#[test]
fn the_next_instance_is_made_when_the_process_is_gone_and_the_runtime_does_not_know() {
    let pod = always();
    let plan = plan_of(&pod, &gone());
    assert_eq!(short(&plan), ["precreate a #1 after a0 in s0"]);
    assert_eq!(
        said(&plan.status),
        "Running a:Running",
        "the runtime's word"
    );
    let as_told = with(vec![instance(running(), ProcessState::AsReported)]);
    assert_eq!(steps(&pod, &as_told), [""; 0]);
    let lost = plan_of(&pod, &with(vec![instance(running(), ProcessState::Lost)]));
    assert_eq!(short(&lost), [""; 0]);
    assert_eq!(
        lost.why,
        [PlanReason::ExitNotReported("a".into(), "a0".into())]
    );
    assert_eq!(said(&lost.status), "Running a:Running");
}

#[test]
fn none_is_made_unless_it_starts_at_once_whatever_the_exit_code() {
    type Change = fn(&mut Container);
    let changes: [(&str, Change); 5] = [
        ("asks a registry", |one| {
            one.pull_policy = PullPolicy::Always;
        }),
        ("its own policy", |one| {
            one.restart_policy = Some(RestartPolicy::OnFailure);
        }),
        ("never", |one| {
            one.restart_policy = Some(RestartPolicy::Never);
        }),
        ("a rule", |one| {
            one.restart_policy = Some(RestartPolicy::Always);
            one.restart_rules = vec![rule(RestartAction::RestartAllContainers, &[7])];
        }),
        ("an edit", |one| {
            one.definition = Some(rubelet_api::container::DefinitionHash("v1:1".into()));
        }),
    ];
    for (what, change) in changes {
        let mut pod = always();
        change(&mut pod.spec.containers[0]);
        let steps = steps(&pod, &gone());
        assert!(
            !steps.iter().any(|step| step.starts_with("make")),
            "{what}: {steps:?}"
        );
    }
    for policy in [RestartPolicy::OnFailure, RestartPolicy::Never] {
        let mut pod = always();
        pod.spec.restart_policy = policy;
        assert_eq!(steps(&pod, &gone()), [""; 0], "{policy:?}");
    }
    let mut rules = always();
    rules.spec.restart_policy = RestartPolicy::Never;
    rules.spec.containers[0].restart_policy = Some(RestartPolicy::Always);
    rules.spec.containers[0].restart_rules = vec![rule(RestartAction::Restart, &[7])];
    assert_eq!(steps(&rules, &gone()), ["precreate a #1 after a0 in s0"]);
}

#[test]
fn none_is_made_while_a_back_off_or_a_stop_is_due() {
    let (pod, observed) = (always(), gone());
    let container = &pod.spec.containers[0];
    let max = std::time::Duration::from_secs(300);
    let mut node = Node::new();
    node.history.note_restart(container, at(20), at(21), max);
    assert_eq!(short(&node.plan(&pod, &observed, 100)), [""; 0]);
    let mut node = Node::new();
    node.history.note_killed("a", &"a0".into(), "why", at(90));
    assert_eq!(short(&node.plan(&pod, &observed, 100)), [""; 0]);
    let mut node = Node::new();
    node.history.note_precreate("a", &"a0".into());
    assert_eq!(short(&node.plan(&pod, &observed, 100)), [""; 0], "once");
}

#[test]
fn what_was_made_is_started_when_the_runtime_tells_the_end() {
    let pod = always();
    let waits = with(vec![made(), instance(running(), ProcessState::Gone)]);
    let plan = plan_of(&pod, &waits);
    assert_eq!(short(&plan), [""; 0]);
    assert_eq!(said(&plan.status), "Running a:Running");
    assert_eq!(plan.status.containers[0].restart_count, 0);

    let ended = with(vec![
        made(),
        instance(exited_at(0, 99), ProcessState::AsReported),
    ]);
    let plan = plan_of(&pod, &ended);
    assert_eq!(short(&plan), ["start a as a1"]);
    let crate::Step::StartContainer {
        restart_count,
        after_exit,
        ..
    } = &plan.steps[0]
    else {
        panic!("{plan:?}");
    };
    assert_eq!(
        (*restart_count, *after_exit),
        (Some(1), Some(at(99))),
        "the back-off counts"
    );
    let without = with(vec![instance(exited_at(0, 99), ProcessState::AsReported)]);
    assert_eq!(plan.status, plan_of(&pod, &without).status);

    // Its start counted, and then the agent died: as any other that was made and not started.
    let mut node = Node::new();
    node.history.count_precreated("a", &"a1".into());
    assert_eq!(short(&node.plan(&pod, &ended, 100)), ["start created a1"]);
}

#[test]
fn what_was_made_for_nothing_is_removed() {
    let waits = || with(vec![made(), instance(running(), ProcessState::Gone)]);
    let lost = with(vec![made(), instance(running(), ProcessState::Lost)]);
    let plan = plan_of(&always(), &lost);
    assert_eq!(
        short(&plan),
        ["remove a1"],
        "the kernel's word led to nothing"
    );
    assert!(
        plan.why
            .contains(&PlanReason::DiscardsPrecreated("a".into()))
    );

    // An agent that was started since knows nothing of the kernel's word.
    let as_told = with(vec![made(), instance(running(), ProcessState::AsReported)]);
    assert_eq!(steps(&always(), &as_told), ["remove a1"]);

    let mut never = always();
    never.spec.restart_policy = RestartPolicy::OnFailure;
    let ended = with(vec![
        made(),
        instance(exited_at(0, 99), ProcessState::AsReported),
    ]);
    assert!(steps(&never, &ended).contains(&"remove a1".to_owned()));

    let mut edited = always();
    edited.spec.containers[0].definition =
        Some(rubelet_api::container::DefinitionHash("v1:1".into()));
    assert_eq!(
        steps(&edited, &ended),
        ["remove a1", "start a #1 in s0"],
        "its number is free before it is taken"
    );
    assert_eq!(
        steps(&edited, &waits()),
        ["kill a0", "remove a1", "start a #1 in s0"]
    );

    let mut node = Node::new();
    let max = std::time::Duration::from_secs(300);
    let pod = always();
    node.history
        .note_restart(&pod.spec.containers[0], at(20), at(21), max);
    assert_eq!(
        short(&node.plan(&pod, &ended, 100)),
        ["remove a1"],
        "it waits"
    );

    let old = ObservedContainer {
        created_at: at(20),
        ..made()
    };
    let stale = with(vec![
        old,
        instance(exited_at(0, 99), ProcessState::AsReported),
    ]);
    assert_eq!(steps(&pod, &stale), ["remove a1", "start a #1 in s0"]);
}

#[test]
fn a_terminating_pod_keeps_no_precreated_container() {
    let pod = always();
    let mut node = Node {
        target: crate::Target::Remove {
            grace: std::time::Duration::from_secs(30),
        },
        ..Node::new()
    };
    let waits = with(vec![made(), instance(running(), ProcessState::Gone)]);
    assert_eq!(short(&node.plan(&pod, &waits, 100)), ["kill a0", "stop s0"]);
    let stopped = seen(
        vec![sandbox(&pod, 0, false)],
        vec![made(), instance(exited_at(0, 99), ProcessState::AsReported)],
    );
    let steps = short(&node.plan(&pod, &stopped, 100));
    assert_eq!(steps, ["remove a0", "remove s0", "remove a1"]);
}
