//! When regular containers start, stop and wait.

use rubelet_api::{
    container::DefinitionHash,
    pod::{Pod, RestartPolicy, RestartPolicy::*},
};

use super::build::*;
use crate::observed::ContainerPhase;

fn in_good_sandbox(pod: &Pod, containers: Vec<crate::ObservedContainer>) -> crate::ObservedPod {
    seen(vec![sandbox(pod, 0, true)], containers)
}

#[test]
fn containers_start_in_the_order_of_the_specification() {
    let pod = pod(Always, &[], &["b", "a"]);
    let plan = Node::new().plan(&pod, &in_good_sandbox(&pod, vec![]), 0);
    assert_eq!(short(&plan), ["start b in s0", "start a in s0"]);
}

#[test]
fn an_exit_is_followed_by_what_the_restart_policy_says() {
    let rows: [(RestartPolicy, i32, &[&str], &str); 6] = [
        (Always, 0, &["start a #1 in s0"], "Running a:Completed(0)"),
        (Always, 1, &["start a #1 in s0"], "Running a:Error(1)"),
        (OnFailure, 0, &["stop s0"], "Succeeded a:Completed(0)"),
        (OnFailure, 1, &["start a #1 in s0"], "Running a:Error(1)"),
        (Never, 0, &["stop s0"], "Succeeded a:Completed(0)"),
        (Never, 1, &["stop s0"], "Failed a:Error(1)"),
    ];
    for (policy, code, steps, status) in rows {
        let pod = pod(policy, &[], &["a"]);
        let observed = in_good_sandbox(&pod, vec![found("a", 0, exited(code))]);
        let plan = Node::new().plan(&pod, &observed, 100);
        assert_eq!(short(&plan), steps, "{policy:?} {code}");
        assert_eq!(said(&plan.status), status, "{policy:?} {code}");
    }
}

#[test]
fn of_two_containers_one_that_ended_for_good_leaves_the_pod_running() {
    let pod = pod(Never, &[], &["a", "b"]);
    let observed = in_good_sandbox(
        &pod,
        vec![found("a", 0, exited(1)), found("b", 0, running())],
    );
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(
        (short(&plan), said(&plan.status).as_str()),
        (vec![], "Running a:Error(1) b:Running")
    );
}

#[test]
fn crashes_back_off_from_ten_seconds_to_three_hundred() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    let max = std::time::Duration::from_secs(300);
    let mut ended = 30;
    let mut waits = vec![];
    for count in 0..8 {
        let observed = in_good_sandbox(&pod, vec![found("a", count, exited_at(1, ended))]);
        let plan = node.plan(&pod, &observed, ended);
        let start = match plan.wake_at {
            Some(wake) => {
                assert_eq!(short(&plan), [""; 0]);
                assert!(said(&plan.status).ends_with("a:CrashLoopBackOff"));
                wake
            }
            None => at(ended),
        };
        waits.push(start.as_second() - at(ended).as_second());
        let offset = start.as_second() - at(0).as_second();
        let plan = node.plan(&pod, &observed, offset);
        assert_eq!(short(&plan), [format!("start a #{} in s0", count + 1)]);
        node.history
            .note_restart(&pod.spec.containers[0], at(ended), start, max);
        ended = offset + 1;
    }
    assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
}

#[test]
fn the_back_off_message_names_delay_container_and_pod() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    let max = std::time::Duration::from_secs(300);
    node.history
        .note_restart(&pod.spec.containers[0], at(0), at(0), max);
    let plan = node.plan(
        &pod,
        &in_good_sandbox(&pod, vec![found("a", 1, exited(1))]),
        31,
    );
    let rubelet_api::status::ContainerState::Waiting { reason, message } =
        &plan.status.containers[0].state
    else {
        panic!("{:?}", plan.status)
    };
    assert_eq!(&**reason, "CrashLoopBackOff");
    assert_eq!(
        &**message,
        "back-off 10s restarting failed container=a pod=p_default(u)"
    );
    assert_eq!(
        plan.status.containers[0]
            .last_state
            .as_ref()
            .unwrap()
            .exit_code,
        1
    );
}

#[test]
fn a_container_that_ran_ten_minutes_starts_again_at_once() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    let max = std::time::Duration::from_secs(300);
    for _ in 0..5 {
        node.history
            .note_restart(&pod.spec.containers[0], at(0), at(0), max);
    }
    let early = in_good_sandbox(&pod, vec![found("a", 5, exited_at(1, 600))]);
    assert_eq!(node.plan(&pod, &early, 600).wake_at, Some(at(760)));
    let late = in_good_sandbox(&pod, vec![found("a", 5, exited_at(1, 601))]);
    assert_eq!(short(&node.plan(&pod, &late, 601)), ["start a #6 in s0"]);
    node.history
        .note_restart(&pod.spec.containers[0], at(601), at(601), max);
    let again = in_good_sandbox(&pod, vec![found("a", 6, exited_at(1, 602))]);
    assert_eq!(node.plan(&pod, &again, 602).wake_at, Some(at(612)));
}

#[test]
fn an_edit_restarts_only_the_container_it_changed_and_without_back_off() {
    let mut pod = pod(Always, &[], &["a", "b"]);
    let observed = in_good_sandbox(
        &pod,
        vec![found("a", 0, running()), found("b", 4, running())],
    );
    pod.spec.containers[1].definition = Some(DefinitionHash("v1:new".into()));
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(short(&plan), ["kill b4", "start b #5 in s0"]);
    let crate::Step::KillContainers(kills) = &plan.steps[0] else {
        panic!()
    };
    assert_eq!(
        &*kills[0].message,
        "Container b definition changed, will be restarted"
    );

    let mut node = Node::new();
    let max = std::time::Duration::from_secs(300);
    node.history
        .note_restart(&pod.spec.containers[1], at(99), at(99), max);
    pod.spec.containers[1].definition = Some(DefinitionHash("v1:newer".into()));
    let observed = in_good_sandbox(
        &pod,
        vec![found("a", 0, running()), found("b", 5, exited_at(1, 100))],
    );
    assert_eq!(
        short(&node.plan(&pod, &observed, 100)),
        ["start b #6 in s0"]
    );
}

#[test]
fn an_edit_starts_a_new_container_and_stops_one_that_left() {
    let pod = pod(Always, &[], &["b"]);
    let observed = in_good_sandbox(&pod, vec![found("a", 0, running())]);
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(short(&plan), ["kill a0", "start b in s0"]);
    let observed = in_good_sandbox(
        &pod,
        vec![found("a", 0, exited(143)), found("b", 0, running())],
    );
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(short(&plan), ["remove a0"]);
}

#[test]
fn a_container_made_by_an_agent_that_died_is_started_not_replaced() {
    let mut pod = pod(Always, &[], &["a"]);
    let observed = in_good_sandbox(&pod, vec![found("a", 0, ContainerPhase::Created)]);
    assert_eq!(
        short(&Node::new().plan(&pod, &observed, 100)),
        ["start created a0"]
    );
    pod.spec.containers[0].definition = Some(DefinitionHash("v1:new".into()));
    assert_eq!(
        short(&Node::new().plan(&pod, &observed, 100)),
        // Its start may be under way still.
        ["remove a0", "start a #1 in s0"]
    );
}

#[test]
fn a_container_in_unknown_state_is_stopped_before_it_starts_again() {
    let pod = pod(Always, &[], &["a"]);
    let observed = in_good_sandbox(&pod, vec![found("a", 0, ContainerPhase::Unknown)]);
    assert_eq!(
        short(&Node::new().plan(&pod, &observed, 100)),
        ["kill a0", "start a #1 in s0"]
    );
}

#[test]
fn of_dead_instances_only_the_newest_is_kept() {
    let pod = pod(Always, &[], &["a"]);
    let observed = in_good_sandbox(
        &pod,
        vec![
            found("a", 0, exited(1)),
            found("a", 1, exited(1)),
            found("a", 2, running()),
        ],
    );
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(short(&plan), ["remove a0"]);
    assert_eq!(
        plan.status.containers[0]
            .last_state
            .as_ref()
            .unwrap()
            .container_id,
        "a1".into()
    );
}

#[test]
fn what_runs_as_wanted_needs_no_step() {
    let pod = pod(Always, &["i"], &["a"]);
    let observed = in_good_sandbox(
        &pod,
        vec![found("i", 0, exited(0)), found("a", 0, running())],
    );
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!((plan.steps.len(), plan.wake_at), (0, None));
    assert_eq!(plan.why, [crate::PlanReason::Converged]);
}

/// How containerd records a start whose caller went away.
fn interrupted_start() -> ContainerPhase {
    failed_start("failed to create containerd task: failed to create shim task: context canceled")
}

fn failed_start(message: &str) -> ContainerPhase {
    ContainerPhase::Exited(crate::observed::Exit {
        code: 128,
        reason: "StartError".into(),
        message: message.into(),
        started_at: None,
        finished_at: at(30),
    })
}

#[test]
fn a_start_whose_shim_was_killed_with_its_caller_counts_as_not_made() {
    let pod = pod(Always, &[], &["a"]);
    let shim = "failed to create containerd task: failed to start shim: start failed: : ";
    for (end, step) in [
        ("signal: killed: unknown", "remove a0"),
        ("exit status 1: unknown", "start a #1 in s0"),
    ] {
        let phase = failed_start(&format!("{shim}{end}"));
        let observed = in_good_sandbox(&pod, vec![found("a", 0, phase)]);
        assert_eq!(short(&Node::new().plan(&pod, &observed, 100)), [step]);
    }
}

#[test]
fn a_start_that_the_agents_death_broke_off_counts_as_not_made() {
    for policy in [Always, OnFailure, Never] {
        let pod = pod(policy, &["i"], &["a"]);
        let mut node = Node::new();
        let rows = [
            (
                vec![found("i", 0, interrupted_start())],
                "remove i0",
                "Pending i:PodInitializing a:PodInitializing",
            ),
            (
                vec![found("i", 0, exited(0)), found("a", 0, interrupted_start())],
                "remove a0",
                "Pending i:Completed(0) a:PodInitializing",
            ),
        ];
        for (containers, step, status) in rows {
            let plan = node.plan(&pod, &in_good_sandbox(&pod, containers), 100);
            assert_eq!(short(&plan), [step], "{policy:?}");
            assert_eq!(said(&plan.status), status, "{policy:?}");
        }
        let observed = in_good_sandbox(&pod, vec![found("i", 0, exited(0))]);
        assert_eq!(short(&node.plan(&pod, &observed, 100)), ["start a in s0"]);
    }
}

#[test]
fn an_interrupted_start_whose_record_cannot_be_removed_does_not_hold_up_the_next_one() {
    let pod = pod(Never, &[], &["a"]);
    let mut node = Node::new();
    let observed = in_good_sandbox(&pod, vec![found("a", 0, interrupted_start())]);
    assert_eq!(short(&node.plan(&pod, &observed, 100)), ["remove a0"]);
    node.history
        .note_teardown_failed("FailedRemoveContainer", "still there", at(100));
    let plan = node.plan(&pod, &observed, 100);
    assert_eq!((short(&plan).len(), plan.wake_at), (0, Some(at(101))));
    assert_eq!(said(&plan.status), "Pending a:ContainerCreating");
    // Its number is taken.
    assert_eq!(
        short(&node.plan(&pod, &observed, 101)),
        ["start a #1 in s0"]
    );

    let containers = vec![found("a", 0, interrupted_start()), found("a", 1, running())];
    let plan = node.plan(&pod, &in_good_sandbox(&pod, containers), 102);
    assert_eq!((short(&plan).len(), plan.wake_at), (0, None));
    assert_eq!(said(&plan.status), "Running a:Running");
    assert_eq!(plan.status.containers[0].last_state, None);
    let containers = vec![found("a", 0, interrupted_start()), found("a", 1, exited(0))];
    let plan = node.plan(&pod, &in_good_sandbox(&pod, containers), 103);
    assert_eq!(said(&plan.status), "Succeeded a:Completed(0)");
}

#[test]
fn a_start_that_failed_by_itself_counts() {
    let pod = pod(Never, &[], &["a"]);
    let mut failed = found("a", 0, interrupted_start());
    if let ContainerPhase::Exited(exit) = &mut failed.phase {
        exit.message = "exec: \"nothing\": executable file not found in $PATH".into();
    }
    let plan = Node::new().plan(&pod, &in_good_sandbox(&pod, vec![failed]), 100);
    assert_eq!(said(&plan.status), "Failed a:StartError(128)");
}

#[test]
fn an_older_instance_that_runs_beside_a_newer_one_is_stopped() {
    let pod = pod(Always, &[], &["a"]);
    let both = vec![found("a", 0, running()), found("a", 1, running())];
    let plan = Node::new().plan(&pod, &in_good_sandbox(&pod, both), 100);
    assert_eq!(short(&plan), ["kill a0"]);
    assert_eq!(
        plan.why,
        [crate::PlanReason::Kills(
            "a".into(),
            crate::reason::KillCause::Superseded
        )]
    );
}

#[test]
fn an_instance_that_was_never_started_is_removed_once_a_newer_one_is_there() {
    let pod = pod(Always, &[], &["a"]);
    let created = || found("a", 0, ContainerPhase::Created);
    let left = vec![created(), found("a", 1, running())];
    let plan = Node::new().plan(&pod, &in_good_sandbox(&pod, left), 100);
    assert_eq!(short(&plan), ["remove a0"]);
    let mut stranger = found("gone", 0, ContainerPhase::Created);
    stranger.id = "gone0".into();
    let left = vec![stranger, found("a", 1, running())];
    let plan = Node::new().plan(&pod, &in_good_sandbox(&pod, left), 100);
    assert_eq!(short(&plan), ["remove gone0"]);
    let plan = Node::new().plan(&pod, &in_good_sandbox(&pod, vec![created()]), 100);
    assert_eq!(short(&plan), ["start created a0"]);
}

#[test]
fn the_start_of_a_created_container_is_repeated_after_a_growing_wait() {
    let pod = pod(Always, &["i"], &["a"]);
    let a = pod.spec.container("a").unwrap();
    let observed = in_good_sandbox(
        &pod,
        vec![
            found("i", 0, exited(0)),
            found("a", 0, ContainerPhase::Created),
        ],
    );
    let mut node = Node::new();
    let mut now = 100;
    for wait in [1, 2, 4, 8, 10, 10] {
        assert_eq!(
            short(&node.plan(&pod, &observed, now)),
            ["start created a0"]
        );
        node.history
            .note_start_failed(a, "RunContainerError", "no", at(now));
        let plan = node.plan(&pod, &observed, now + wait - 1);
        assert_eq!((short(&plan), plan.wake_at), (vec![], Some(at(now + wait))));
        assert_eq!(
            said(&plan.status),
            "Pending i:Completed(0) a:RunContainerError"
        );
        now += wait;
    }
}

#[test]
fn a_failed_start_is_forgotten_when_the_container_runs_all_the_same() {
    let pod = pod(Always, &[], &["a"]);
    let a = pod.spec.container("a").unwrap();
    let mut node = Node::new();
    node.history
        .note_start_failed(a, "RunContainerError", "timed out", at(90));
    node.history
        .note_sandbox_failed("FailedCreatePodSandBox", "timed out", at(80));
    let observed = in_good_sandbox(&pod, vec![found("a", 0, running())]);
    node.history.note_observed(&observed);
    node.history
        .note_restart(a, at(100), at(100), std::time::Duration::from_secs(300));
    let crashed = in_good_sandbox(&pod, vec![found("a", 1, exited_at(1, 105))]);
    let plan = node.plan(&pod, &crashed, 106);
    assert_eq!(said(&plan.status), "Running a:CrashLoopBackOff");
    assert_eq!(node.history.sandbox, None);
}
