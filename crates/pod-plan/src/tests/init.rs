//! Init containers run one after the other, before the rest.

use rubelet_api::pod::RestartPolicy::*;

use super::build::*;
use crate::observed::ContainerPhase;

#[test]
fn init_containers_gate_each_other_and_the_rest() {
    let pod = pod(Always, &["i", "j"], &["a"]);
    let rows: Vec<(Vec<crate::ObservedContainer>, Vec<&str>, &str)> = vec![
        (
            vec![],
            vec!["start i in s0"],
            "i:PodInitializing j:PodInitializing a:PodInitializing",
        ),
        (
            vec![found("i", 0, running())],
            vec![],
            "i:Running j:PodInitializing a:PodInitializing",
        ),
        (
            vec![found("i", 0, exited(0))],
            vec!["start j in s0"],
            "i:Completed(0) j:PodInitializing a:PodInitializing",
        ),
        (
            vec![found("i", 0, exited(1))],
            vec!["start i #1 in s0"],
            "i:Error(1) j:PodInitializing a:PodInitializing",
        ),
        (
            vec![found("i", 0, exited(0)), found("j", 0, exited(0))],
            vec!["start a in s0"],
            "i:Completed(0) j:Completed(0) a:PodInitializing",
        ),
        (
            vec![
                found("i", 0, exited(0)),
                found("j", 0, ContainerPhase::Created),
            ],
            vec!["start created j0"],
            "i:Completed(0) j: a:PodInitializing",
        ),
        (
            vec![
                found("i", 0, exited(0)),
                found("j", 0, ContainerPhase::Unknown),
            ],
            vec!["kill j0", "start j #1 in s0"],
            "i:Completed(0) j:ContainerStatusUnknown(137) a:PodInitializing",
        ),
    ];
    for (containers, steps, status) in rows {
        let observed = seen(vec![sandbox(&pod, 0, true)], containers);
        let plan = Node::new().plan(&pod, &observed, 100);
        assert_eq!(short(&plan), steps);
        assert_eq!(said(&plan.status), format!("Pending {status}"));
    }
}

#[test]
fn a_failed_init_container_ends_a_pod_that_never_restarts() {
    let pod = pod(Never, &["i"], &["a"]);
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![found("i", 0, exited(1))]);
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(short(&plan), ["stop s0"]);
    assert_eq!(said(&plan.status), "Failed i:Error(1) a:PodInitializing");
}

#[test]
fn an_init_container_out_of_memory_failed_even_with_exit_code_zero() {
    let pod = pod(OnFailure, &["i"], &["a"]);
    let mut killed = found("i", 0, exited(0));
    if let ContainerPhase::Exited(exit) = &mut killed.phase {
        exit.reason = "OOMKilled".into();
    }
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![killed]);
    assert_eq!(
        short(&Node::new().plan(&pod, &observed, 100)),
        ["start i #1 in s0"]
    );
}

#[test]
fn init_containers_run_again_in_a_new_sandbox_and_keep_their_counts() {
    let pod = pod(Always, &["i"], &["a"]);
    let old = vec![found("i", 0, exited(0)), found("a", 0, exited(137))];
    let observed = seen(vec![sandbox(&pod, 0, false), sandbox(&pod, 1, true)], old);
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(short(&plan), ["start i #1 in s1"]);
}

#[test]
fn init_containers_do_not_run_again_when_only_the_rest_crashed() {
    let pod = pod(Always, &["i"], &["a"]);
    let containers = vec![found("i", 0, exited(0)), found("a", 0, exited(1))];
    let observed = seen(vec![sandbox(&pod, 0, true)], containers);
    assert_eq!(
        short(&Node::new().plan(&pod, &observed, 100)),
        ["start a #1 in s0"]
    );
}

#[test]
fn a_lost_record_of_an_init_container_changes_nothing_while_the_rest_runs() {
    let pod = pod(Always, &["i"], &["a"]);
    let observed = seen(vec![sandbox(&pod, 0, true)], vec![found("a", 0, running())]);
    let plan = Node::new().plan(&pod, &observed, 100);
    assert_eq!(
        (short(&plan), said(&plan.status).as_str()),
        (vec![], "Running i:Completed(0) a:Running")
    );
}

#[test]
fn an_edited_init_container_runs_again_in_a_new_sandbox() {
    let mut pod = pod(Always, &["i"], &["a"]);
    let made = sandbox(&pod, 0, true);
    pod.spec.init_containers[0].definition =
        Some(rubelet_api::container::DefinitionHash("v1:new".into()));
    let containers = vec![found("i", 0, exited(0)), found("a", 0, running())];
    let plan = Node::new().plan(&pod, &seen(vec![made], containers), 100);
    assert_eq!(short(&plan), ["kill a0", "stop s0", "sandbox 1"]);
}
