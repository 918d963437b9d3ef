//! Restart policies and rules of single containers (KEP-5307).

use rubelet_api::{
    container::RestartAction::Restart,
    pod::RestartPolicy::{self, *},
};

use super::build::*;

/// The pod's policy, the container's own, exit codes of its rule; an exit code, and what follows.
type Row = (
    RestartPolicy,
    Option<RestartPolicy>,
    &'static [i32],
    i32,
    bool,
);

#[test]
fn a_containers_own_policy_and_rules_come_before_the_pods() {
    let rows: [Row; 12] = [
        (Always, None, &[], 0, true),
        (Always, Some(Never), &[], 1, false),
        (Always, Some(OnFailure), &[], 0, false),
        (Always, Some(OnFailure), &[], 3, true),
        (Never, Some(Always), &[], 0, true),
        (Never, Some(OnFailure), &[], 1, true),
        (Never, Some(OnFailure), &[], 0, false),
        (Never, Some(Never), &[42], 42, true),
        (Never, Some(Never), &[42], 41, false),
        (OnFailure, Some(Never), &[0, 42], 0, true),
        // Rules without a policy of the container are refused by the API; they do not count.
        (Never, None, &[42], 42, false),
        (Always, Some(Never), &[], 137, false),
    ];
    for (policy, own, codes, code, restarts) in rows {
        let mut pod = pod(policy, &[], &["a"]);
        pod.spec.containers[0].restart_policy = own;
        if !codes.is_empty() {
            pod.spec.containers[0].restart_rules = vec![rule(Restart, codes)];
        }
        let (steps, said) = Node::new().in_sandbox(&pod, &format!("a=exit:{code}"));
        let name = format!("{policy:?} {own:?} {codes:?} {code}");
        if restarts {
            assert_eq!(steps, ["start a #1 in s0"], "{name}");
            assert!(said.starts_with("Running "), "{name}: {said}");
        } else {
            assert_eq!(steps, ["stop s0"], "{name}");
            let phase = if code == 0 { "Succeeded " } else { "Failed " };
            assert!(said.starts_with(phase), "{name}: {said}");
        }
    }
}

#[test]
fn the_first_rule_that_matches_counts_and_a_rule_may_be_negated() {
    let mut pod = pod(Never, &[], &["a"]);
    let a = &mut pod.spec.containers[0];
    a.restart_policy = Some(Never);
    a.restart_rules = vec![rule(Restart, &[1, 2])];
    a.restart_rules[0].negated = true;
    for (code, restarts) in [(0, true), (1, false), (2, false), (3, true)] {
        let (steps, _) = Node::new().in_sandbox(&pod, &format!("a=exit:{code}"));
        assert_eq!(steps == ["start a #1 in s0"], restarts, "{code}");
    }
}

#[test]
fn an_init_container_with_its_own_policy_is_tried_again_in_a_pod_that_is_not() {
    for (own, rules, code, steps) in [
        (None, vec![], 1, vec!["stop s0"]),
        (Some(OnFailure), vec![], 1, vec!["start i #1 in s0"]),
        (
            Some(Never),
            vec![rule(Restart, &[7])],
            7,
            vec!["start i #1 in s0"],
        ),
        (Some(Never), vec![rule(Restart, &[7])], 8, vec!["stop s0"]),
    ] {
        let mut pod = pod(Never, &["i"], &["a"]);
        pod.spec.init_containers[0].restart_policy = own;
        pod.spec.init_containers[0].restart_rules = rules;
        let (found, said) = Node::new().in_sandbox(&pod, &format!("i=exit:{code}"));
        assert_eq!(found, steps, "{own:?} {code}");
        let failed = steps == ["stop s0"];
        assert_eq!(
            said.starts_with("Failed "),
            failed,
            "{own:?} {code}: {said}"
        );
    }
}

#[test]
fn a_container_of_its_own_policy_keeps_a_pod_running_that_would_have_ended() {
    let mut pod = pod(Never, &[], &["job", "web"]);
    pod.spec.containers[1].restart_policy = Some(Always);
    let (steps, said) = Node::new().in_sandbox(&pod, "job=exit:0 web=exit:1");
    assert_eq!(steps, ["start web #1 in s0"]);
    assert_eq!(said, "Running job:Completed(0) web:Error(1)");
}
