//! Properties of merges and patches, whatever the two sides say.

use std::sync::Arc;

use proptest::prelude::*;
use rubelet_api::{
    pod::{Pod, PodSource, RestartPolicy},
    status::{ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus},
    wire::{WireContext, status_json},
};
use serde_json::Value;

use super::{
    super::{merge::merge, merge_context::MergeContext, patch::patch, same::same},
    server::apply,
};
use crate::test_objects::{at, condition, container, ended, pod, status};

fn phases() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Pending),
        Just(Phase::Running),
        Just(Phase::Succeeded),
        Just(Phase::Failed),
    ]
}

fn states() -> impl Strategy<Value = ContainerState> {
    prop_oneof![
        Just(ContainerState::Waiting {
            reason: "CrashLoopBackOff".into(),
            message: "".into(),
        }),
        (0..3_i64).prop_map(|second| ContainerState::Running {
            started_at: at(second),
        }),
        (0..2_i32).prop_map(ended),
    ]
}

prop_compose! {
    fn containers()(
        name in prop_oneof![Just("a"), Just("b")],
        state in states(),
        restart_count in 0..4_u32,
        id in prop_oneof![Just(""), Just("c1"), Just("c2")],
    ) -> ContainerStatus {
        ContainerStatus { restart_count, container_id: id.into(), ..container(name, state) }
    }
}

prop_compose! {
    fn statuses()(
        phase in phases(),
        reason in prop_oneof![Just(""), Just("Evicted")],
        start in 0..3_i64,
        ips in proptest::collection::btree_set(prop_oneof![Just("10.0.0.1"), Just("fd00::1"), Just("10.0.0.2")], 0..3),
        kinds in proptest::collection::btree_set(
            prop_oneof![Just("Ready"), Just("ContainersReady"), Just("Initialized"), Just("DisruptionTarget"), Just("PodScheduled")],
            0..5,
        ),
        is in 0..3_u8,
        generation in 0..4_i64,
        list in proptest::collection::vec(containers(), 0..3),
    ) -> PodStatus {
        let mut said = status(phase, Vec::new());
        said.reason = reason.into();
        said.start_time = at(start);
        said.pod_ips = ips.into_iter().map(Into::into).collect();
        said.observed_generation = generation;
        said.conditions = kinds.into_iter().map(|kind| {
            let mut made = condition(kind, is > 0);
            made.last_transition = at(start);
            made.message = if is == 2 { "why".into() } else { "".into() };
            made
        }).collect();
        for one in list {
            if said.containers.iter().all(|other| other.name != one.name) {
                said.containers.push(one);
            }
        }
        said
    }
}

fn wire(said: &PodStatus) -> Value {
    let context = WireContext {
        runtime: "containerd",
        ..WireContext::default()
    };
    status_json(said, rubelet_api::resources::QosClass::BestEffort, &context)
}

/// What others have written into the API's copy.
fn with_foreign(mut theirs: Value, foreign: bool) -> Value {
    if foreign {
        let mut made = condition("example.com/gate", true);
        made.status = ConditionStatus::Unknown;
        let mut said = status(Phase::Running, Vec::new());
        said.conditions = vec![made];
        let gate = wire(&said)["conditions"][0].clone();
        let list = theirs["conditions"].as_array_mut().expect("conditions");
        list.insert(0, gate);
        theirs["nominatedNodeName"] = "other".into();
    }
    theirs
}

fn pods() -> impl Strategy<Value = Arc<Pod>> {
    let policies = prop_oneof![Just("Always"), Just("OnFailure"), Just("Never")];
    policies.prop_map(|policy| {
        let spec = format!(
            "{{restartPolicy: {policy}, containers: [{{name: a, image: x}}, {{name: b, image: x}}]}}"
        );
        pod(PodSource::Api, "web", "u", &spec)
    })
}

fn terminal(status: &Value) -> bool {
    status["phase"] == "Succeeded" || status["phase"] == "Failed"
}

fn of<'a>(list: &'a Value, key: &str, value: &Value) -> Option<&'a Value> {
    list.as_array()?.iter().find(|one| one[key] == *value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_patch_gives_the_merged_status_and_then_there_is_nothing_to_send(
        pod in pods(), ours in statuses(), theirs in statuses(), foreign: bool, running: bool, mirror: bool,
    ) {
        let (ours, theirs) = (wire(&ours), with_foreign(wire(&theirs), foreign));
        let facts = MergeContext { spec: &pod.spec, mirror, running, now: at(9) };
        let merged = merge(&ours, &theirs, &facts);
        let stored = match patch("u", &theirs, &merged) {
            Some(patch) => apply(&theirs, &patch),
            None => theirs.clone(),
        };
        // In which order conditions stand says nothing.
        let sorted = |status: &Value| {
            let mut status = status.clone();
            if let Some(list) = status["conditions"].as_array_mut() {
                list.sort_by_key(|one| one["type"].to_string());
            }
            status
        };
        prop_assert!(same(&sorted(&stored), &sorted(&merged)), "{stored}\n{merged}");
        // The same again, and later: nothing.
        let later = MergeContext { now: at(99), ..facts };
        let again = merge(&ours, &stored, &later);
        prop_assert_eq!(patch("u", &stored, &again), None);
    }

    #[test]
    fn nothing_goes_back_and_nothing_of_others_is_lost(
        pod in pods(), ours in statuses(), theirs in statuses(), foreign: bool, running: bool,
    ) {
        let (ours, theirs) = (wire(&ours), with_foreign(wire(&theirs), foreign));
        let facts = MergeContext { spec: &pod.spec, mirror: false, running, now: at(9) };
        let merged = merge(&ours, &theirs, &facts);
        if terminal(&theirs) {
            for field in ["phase", "reason"] {
                prop_assert_eq!(&merged[field], &theirs[field]);
            }
        }
        if theirs["phase"] == "Running" {
            prop_assert_ne!(&merged["phase"], "Pending");
        }
        if running && !terminal(&theirs) {
            prop_assert!(!terminal(&merged));
        }
        if terminal(&merged) {
            for kind in ["Ready", "ContainersReady"] {
                let found = of(&merged["conditions"], "type", &kind.into());
                prop_assert!(found.is_none_or(|one| one["status"] != "True"));
            }
        }
        prop_assert_eq!(&merged["startTime"], &theirs["startTime"]);
        prop_assert!(merged["observedGeneration"].as_i64() >= theirs["observedGeneration"].as_i64());
        if foreign {
            prop_assert_eq!(&merged["nominatedNodeName"], "other");
            prop_assert_eq!(&merged["conditions"][0], &theirs["conditions"][0]);
        }
        let known = theirs["containerStatuses"].as_array().into_iter().flatten();
        for old in known {
            prop_assert!(of(&merged["containerStatuses"], "name", &old["name"]).is_some());
        }
        let statuses = merged["containerStatuses"].as_array().cloned().unwrap_or_default();
        for one in statuses {
            let Some(old) = of(&theirs["containerStatuses"], "name", &one["name"]) else { continue };
            prop_assert!(one["restartCount"].as_u64() >= old["restartCount"].as_u64());
            if !old["lastState"]["terminated"].is_null() {
                prop_assert!(!one["lastState"]["terminated"].is_null());
            }
            let ended = &old["state"]["terminated"];
            let for_good = match pod.spec.restart_policy {
                RestartPolicy::Always => false,
                RestartPolicy::OnFailure => ended["exitCode"] == 0,
                RestartPolicy::Never => true,
            };
            if ended.is_object() && for_good {
                prop_assert!(one["state"]["terminated"].is_object());
            }
        }
    }
}
