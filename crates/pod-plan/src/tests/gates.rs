//! Readiness gates, conditions of others, generations.

use rubelet_api::{
    pod::{PodSource, RestartPolicy::*},
    status::ConditionStatus,
};

use super::build::*;
use crate::intents::ExternalCondition;

fn foreign(kind: &str, status: ConditionStatus) -> ExternalCondition {
    ExternalCondition {
        kind: kind.into(),
        status,
        reason: "ConditionText".into(),
        message: "".into(),
        last_transition: at(7),
    }
}

#[test]
fn a_pod_is_ready_when_its_containers_are_and_all_gates_are_open() {
    let mut pod = pod(Always, &[], &["a"]);
    pod.spec.readiness_gates = vec!["lb".into(), "db".into()];
    let mut node = Node::new();
    let ready = |node: &mut Node, records: &str| {
        node.in_sandbox(&pod, records);
        let all = conditions(node.status.as_ref().unwrap());
        let found = all.iter().find(|one| one[1..].starts_with("Ready "));
        let found = found.or_else(|| all.iter().find(|one| &one[1..] == "Ready"));
        found.unwrap().clone()
    };
    assert_eq!(
        ready(&mut node, "a=run"),
        "-Ready ReadinessGatesNotReady corresponding condition of pod readiness gate \"lb\" does not \
         exist., corresponding condition of pod readiness gate \"db\" does not exist."
    );
    node.intents.conditions = vec![
        foreign("lb", ConditionStatus::True),
        foreign("db", ConditionStatus::Unknown),
    ];
    assert_eq!(
        ready(&mut node, "a=run"),
        "-Ready ReadinessGatesNotReady the status of pod readiness gate \"db\" is not \"True\", but Unknown"
    );
    node.intents.conditions[1].status = ConditionStatus::True;
    assert_eq!(ready(&mut node, "a=run"), "+Ready");
    assert_eq!(
        ready(&mut node, "a=exit:1"),
        "-Ready ContainersNotReady containers with unready status: [a]"
    );
}

#[test]
fn a_resize_that_is_not_made_is_a_condition_until_the_pod_has_ended() {
    let mut pod = pod(Never, &[], &["a"]);
    pod.source = PodSource::Api;
    pod.resize_infeasible = Some("not here");
    pod.generation = 3;
    let mut node = Node::new();
    node.in_sandbox(&pod, "a=run");
    let status = node.status.take().unwrap();
    let condition = status.condition("PodResizePending").unwrap();
    assert!(condition.status.is_true());
    assert_eq!(
        (&*condition.reason, &*condition.message),
        ("Infeasible", "not here")
    );
    assert_eq!(condition.observed_generation, 3);
    node.in_sandbox(&pod, "a=exit:0");
    let status = node.status.take().unwrap();
    assert!(status.phase.is_terminal());
    assert_eq!(status.condition("PodResizePending"), None);
}

#[test]
fn conditions_of_others_come_first_and_are_kept_as_they_were_set() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    node.intents.conditions = vec![
        foreign("DisruptionTarget", ConditionStatus::True),
        foreign("example.org/checked", ConditionStatus::False),
    ];
    node.in_sandbox(&pod, "a=run");
    let status = node.status.unwrap();
    let kinds: Vec<&str> = status.conditions.iter().map(|one| &*one.kind).collect();
    assert_eq!(
        kinds,
        [
            "example.org/checked",
            "DisruptionTarget",
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled"
        ]
    );
    assert_eq!(status.conditions[0].last_transition, at(7));
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let pod = pod(Always, &[], &["a"]);
    let mut node = Node::new();
    let mut ready_at = |records_: &str, now: i64| {
        let observed = seen(vec![sandbox(&pod, 0, true)], records(records_));
        let status = node.plan(&pod, &observed, now).status;
        let ready = status.condition("Ready").unwrap();
        (ready.status.is_true(), ready.last_transition)
    };
    assert_eq!(ready_at("", 50), (false, at(50)));
    assert_eq!(ready_at("a=created", 60), (false, at(50)));
    assert_eq!(ready_at("a=run", 70), (true, at(70)));
    assert_eq!(ready_at("a=run", 80), (true, at(70)));
    assert_eq!(ready_at("a=exit:1", 90), (false, at(90)));
}
