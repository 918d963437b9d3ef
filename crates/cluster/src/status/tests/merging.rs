//! Tables of merges.

use rubelet_api::{
    pod::{Pod, PodSource},
    status::{ContainerState, Phase, PodStatus},
    wire::{WireContext, status_json},
};
use serde_json::{Value, json};

use super::super::{
    merge::merge, merge_context::MergeContext, patch::patch, terminated::terminated,
};
use crate::test_objects::{at, condition, container, ended, plain, pod, running, status};

fn ours(status: &PodStatus) -> Value {
    let context = WireContext {
        runtime: "containerd",
        ..WireContext::default()
    };
    status_json(
        status,
        rubelet_api::resources::QosClass::BestEffort,
        &context,
    )
}

fn facts(pod: &Pod, running: bool) -> MergeContext<'_> {
    MergeContext {
        spec: &pod.spec,
        mirror: false,
        running,
        now: at(100),
    }
}

fn find<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array().expect("conditions");
    let mut found = conditions.iter().filter(|one| one["type"] == kind);
    let first = found.next().unwrap_or(&Value::Null);
    assert_eq!(found.next(), None, "{kind} is there once");
    first
}

#[test]
fn conditions_of_others_are_kept_and_ours_replaced() {
    let web = plain("web", "Always");
    let theirs = json!({
        "phase": "Running",
        "nominatedNodeName": "other",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"},
            {"type": "example.com/gate", "status": "True"},
            {"type": "PodResizePending", "status": "True"},
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
            {"type": "Ready", "status": "False", "reason": "Old", "lastTransitionTime": "2020-01-01T00:00:00Z"},
        ],
    });
    let ours = ours(&status(Phase::Running, vec![running("a")]));
    let merged = merge(&ours, &theirs, &facts(&web, true));
    assert_eq!(find(&merged, "example.com/gate"), &theirs["conditions"][1]);
    assert_eq!(find(&merged, "DisruptionTarget"), &theirs["conditions"][3]);
    assert_eq!(find(&merged, "PodResizePending"), &Value::Null);
    assert_eq!(merged["nominatedNodeName"], "other");
    // What did not change keeps its time, what changed has ours.
    let scheduled = find(&merged, "PodScheduled");
    assert_eq!(scheduled["lastTransitionTime"], "2020-01-01T00:00:00Z");
    let ready = find(&merged, "Ready");
    assert_eq!(ready["status"], "True");
    assert_eq!(ready["lastTransitionTime"], "2027-01-15T08:00:02Z");

    let patch = patch("u", &theirs, &merged).unwrap();
    assert_eq!(patch["metadata"], json!({"uid": "u"}));
    let changed = patch["status"]["conditions"].as_array().unwrap();
    let gone = changed.iter().find(|one| one["type"] == "PodResizePending");
    assert_eq!(gone.unwrap()["$patch"], "delete");
    let ready = changed.iter().find(|one| one["type"] == "Ready").unwrap();
    assert_eq!(
        ready.get("reason"),
        Some(&Value::Null),
        "it had a reason before"
    );
    assert!(changed.iter().all(|one| one["type"] != "example.com/gate"));
    assert_eq!(patch["status"].get("phase"), None, "it is the same");
}

#[test]
fn phases_end_when_the_last_container_has_and_never_begin_again() {
    let web = plain("web", "Never");
    for (old, new, running, expected) in [
        (Value::Null, Phase::Pending, false, "Pending"),
        (json!("Pending"), Phase::Running, true, "Running"),
        (json!("Running"), Phase::Pending, true, "Running"),
        (json!("Running"), Phase::Failed, true, "Running"),
        (Value::Null, Phase::Failed, true, "Pending"),
        (json!("Running"), Phase::Failed, false, "Failed"),
        (json!("Failed"), Phase::Running, true, "Failed"),
        (json!("Succeeded"), Phase::Failed, false, "Succeeded"),
    ] {
        let theirs = json!({"phase": old, "reason": "Old"});
        let mut said = status(new, Vec::new());
        said.reason = "New".into();
        let merged = merge(&ours(&said), &theirs, &facts(&web, running));
        assert_eq!(merged["phase"], expected, "{old} {new:?} {running}");
        let reason = if new.as_str() == expected {
            "New"
        } else {
            "Old"
        };
        assert_eq!(merged["reason"], reason, "{old} {new:?} {running}");
    }
}

#[test]
fn a_pod_that_has_ended_is_not_ready() {
    let web = plain("web", "Never");
    for (phase, reason) in [
        (Phase::Succeeded, "PodCompleted"),
        (Phase::Failed, "PodFailed"),
    ] {
        let mut said = status(phase, vec![container("a", ended(1))]);
        said.conditions = vec![condition("Ready", true), condition("ContainersReady", true)];
        let merged = merge(
            &ours(&said),
            &json!({"phase": "Running"}),
            &facts(&web, false),
        );
        for kind in ["Ready", "ContainersReady"] {
            let found = find(&merged, kind);
            assert_eq!(
                (&found["status"], &found["reason"]),
                (&json!("False"), &json!(reason))
            );
            assert_eq!(found["lastTransitionTime"], "2027-01-15T08:01:40Z");
        }
    }
}

#[test]
fn why_a_pod_was_ended_early_is_reported_with_its_end() {
    let web = plain("web", "Never");
    let mut said = status(Phase::Failed, Vec::new());
    said.conditions.push(condition("DisruptionTarget", true));
    let theirs = json!({"phase": "Running"});
    let merged = merge(&ours(&said), &theirs, &facts(&web, true));
    assert_eq!(find(&merged, "DisruptionTarget"), &Value::Null);
    let merged = merge(&ours(&said), &theirs, &facts(&web, false));
    assert_eq!(find(&merged, "DisruptionTarget")["status"], "True");
}

#[test]
fn a_container_that_ended_for_good_does_not_start_again() {
    let spec = |policy: &str, more: &str| {
        let spec =
            format!("{{restartPolicy: {policy}, containers: [{{name: a, image: x{more}}}]}}");
        pod(PodSource::Api, "web", "u", &spec)
    };
    let rule = ", restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: \
                {operator: In, values: [3]}}]";
    for (policy, more, code, may) in [
        ("Always", "", 0, true),
        ("OnFailure", "", 0, false),
        ("OnFailure", "", 1, true),
        ("Never", "", 1, false),
        ("Never", rule, 3, true),
        ("Never", rule, 4, false),
    ] {
        let theirs = ours(&status(Phase::Running, vec![container("a", ended(code))]));
        let new = ours(&status(Phase::Running, vec![running("a")]));
        let merged = merge(&new, &theirs, &facts(&spec(policy, more), true));
        let runs = merged["containerStatuses"][0]["state"]["running"].is_object();
        assert_eq!(runs, may, "{policy} {more} {code}");
    }
}

#[test]
fn what_the_agent_forgot_of_a_container_is_not_lost() {
    let web = plain("web", "Always");
    let with = |id: &str, state, restarts| {
        let mut one = container("a", state);
        (one.container_id, one.restart_count) = (id.into(), restarts);
        ours(&status(Phase::Running, vec![one]))
    };
    let (runs, waits) = (
        ContainerState::Running { started_at: at(1) },
        ContainerState::Waiting {
            reason: "ContainerCreating".into(),
            message: "".into(),
        },
    );
    let shown = |old: &Value, new: &Value| {
        let merged = merge(new, old, &facts(&web, true));
        let one = &merged["containerStatuses"][0];
        let last = &one["lastState"]["terminated"];
        assert_eq!(merge(new, &merged, &facts(&web, true)), merged);
        format!("{} after {}", one["restartCount"], last["exitCode"])
    };
    let old = with("c1", runs.clone(), 2);
    for (new, expected) in [
        (with("c1", runs.clone(), 2), "2 after null"),
        (with("", waits.clone(), 0), "2 after 137"),
        (with("c2", runs.clone(), 0), "3 after 137"),
        (with("c2", runs.clone(), 7), "7 after 137"),
        (with("c1", ended(4), 2), "2 after null"),
    ] {
        assert_eq!(shown(&old, &new), expected);
    }
    let old = with("c1", ended(4), 2);
    for (new, expected) in [
        (with("", waits, 2), "2 after 4"),
        (with("c2", runs, 2), "3 after 4"),
        (with("c1", ended(4), 2), "2 after null"),
    ] {
        assert_eq!(shown(&old, &new), expected);
    }
    // A status without containers knows nothing of them.
    let merged = merge(
        &ours(&status(Phase::Running, Vec::new())),
        &old,
        &facts(&web, true),
    );
    assert_eq!(merged["containerStatuses"], old["containerStatuses"]);
}

#[test]
fn start_time_restart_counts_addresses_and_generation_never_go_back() {
    let web = plain("web", "Always");
    let mut before = status(Phase::Running, vec![running("a")]);
    before.containers[0].restart_count = 7;
    before.observed_generation = 5;
    let theirs = ours(&before);
    // The agent lost its records and knows less than it once said.
    let mut after = status(Phase::Running, vec![running("a")]);
    after.start_time = at(50);
    after.pod_ips = Vec::new();
    let merged = merge(&ours(&after), &theirs, &facts(&web, true));
    for field in ["startTime", "podIP", "podIPs", "observedGeneration"] {
        assert_eq!(merged[field], theirs[field], "{field}");
    }
    assert_eq!(merged["containerStatuses"][0]["restartCount"], 7);
}

#[test]
fn addresses_are_replaced_in_order() {
    let web = plain("web", "Always");
    let mut said = status(Phase::Running, Vec::new());
    let theirs = ours(&said);
    said.pod_ips = vec!["fd00::8".into(), "10.0.0.7".into()];
    let merged = merge(&ours(&said), &theirs, &facts(&web, true));
    let patch = patch("u", &theirs, &merged).unwrap();
    assert_eq!(
        patch["status"],
        json!({
            "podIP": "fd00::8",
            "podIPs": [{"$patch": "replace"}, {"ip": "fd00::8"}, {"ip": "10.0.0.7"}],
        })
    );
    assert_eq!(super::server::apply(&theirs, &patch), merged);
}

#[test]
fn what_says_the_same_is_not_sent() {
    let web = plain("web", "Always");
    let mut said = status(Phase::Running, vec![running("a")]);
    let theirs = ours(&said);
    said.start_time = at(77);
    for condition in &mut said.conditions {
        condition.last_transition = at(78);
    }
    said.conditions.reverse();
    let merged = merge(&ours(&said), &theirs, &facts(&web, true));
    assert_eq!(patch("u", &theirs, &merged), None);
}

#[test]
fn a_mirror_pod_shows_no_generation_of_the_manifest() {
    let web = plain("web", "Always");
    let facts = MergeContext {
        mirror: true,
        ..facts(&web, true)
    };
    let merged = merge(
        &ours(&status(Phase::Running, Vec::new())),
        &json!({}),
        &facts,
    );
    assert_eq!(merged.get("observedGeneration"), None);
    assert_eq!(find(&merged, "Ready").get("observedGeneration"), None);
}

#[test]
fn the_last_status_of_a_pod_tells_how_each_container_ended() {
    let spec = "{initContainers: [{name: i, image: x}, {name: j, image: x}], containers: [{name: a, image: x}]}";
    let web = pod(PodSource::Api, "web", "u", spec);
    let waiting = |name: &str| {
        let (reason, message) = ("PodInitializing".into(), "".into());
        let state = ContainerState::Waiting { reason, message };
        container(name, state)
    };
    let shown = |init: Vec<_>, regular: Vec<_>| {
        let mut said = status(Phase::Running, regular);
        said.init_containers = init;
        let last = terminated(&web, &said);
        assert_eq!(last.phase, Phase::Failed);
        let one = |one: &rubelet_api::status::ContainerStatus| match &one.state {
            ContainerState::Terminated(end) => {
                format!("{} {}", one.name, end.exit_code)
            }
            _ => format!("{} never ran", one.name),
        };
        last.all_containers()
            .map(one)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let done = |name: &str| container(name, ended(0));
    assert_eq!(
        shown(vec![waiting("i"), waiting("j")], vec![waiting("a")]),
        "i 137, j never ran, a never ran"
    );
    assert_eq!(
        shown(vec![done("i"), running("j")], vec![waiting("a")]),
        "i 0, j 137, a never ran"
    );
    assert_eq!(
        shown(vec![done("i"), done("j")], vec![waiting("a")]),
        "i 0, j 0, a 137"
    );
    assert_eq!(
        shown(vec![done("i"), done("j")], vec![running("a")]),
        "i 0, j 0, a 137"
    );

    // Static pods are not deleted from the API server: nothing is made up for them.
    let file = crate::test_objects::from_file("web", "x");
    let said = status(Phase::Pending, vec![waiting("a")]);
    assert_eq!(terminated(&file, &said), said);
}
