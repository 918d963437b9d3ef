//! What a watch of the API server makes of pods.

use rubelet_kube::Change;
use serde_json::{Value, json, value::RawValue};

use super::{
    gates::Gates,
    state::{ApiState, Json, Told},
};

fn raw(value: &Value) -> Json {
    RawValue::from_string(value.to_string()).unwrap()
}

fn pod(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("uid-of-{name}"),
            "resourceVersion": version.to_string(),
            "generation": 1,
        },
        "spec": {
            "nodeName": "n",
            "containers": [{
                "name": "main",
                "image": "app:1",
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
        },
        "status": { "phase": "Pending" },
    })
}

fn with(mut pod: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[key] = value;
    pod
}

/// In short: `has a@7`, `lost a`, `wants a`, `rejects a: REASON`, `remember a`, `unknown FIELD`.
fn told(state: &mut ApiState, change: Change<Json>) -> Vec<String> {
    let short = |told: Told| match told {
        Told::Has(pod) => {
            let kind = if pod.mirror.is_some() { "mirror " } else { "" };
            format!("has {kind}{}@{}", pod.name.name, pod.resource_version)
        }
        Told::Lost(uid) => format!("lost {}", uid.as_str().trim_start_matches("uid-of-")),
        Told::Wants(pod, None) => format!("wants {}", pod.name.name),
        Told::Wants(pod, Some(rejection)) => {
            format!("rejects {}: {}", pod.name.name, rejection.reason)
        }
        Told::Remember(..) => "remember".to_owned(),
        Told::Unknown(_, fields) => format!("unknown {}", fields.join(" ")),
        Told::Nonsense(_) => "nonsense".to_owned(),
        Told::Complete => "complete".to_owned(),
    };
    state.apply(change, "n").into_iter().map(short).collect()
}

fn applied(state: &mut ApiState, pod: &Value) -> Vec<String> {
    told(state, Change::Applied(raw(pod)))
}

fn listed(state: &mut ApiState, pods: &[Value]) -> Vec<String> {
    told(state, Change::Listed(pods.iter().map(raw).collect()))
}

#[test]
fn a_list_is_all_there_is() {
    let mut state = ApiState::default();
    let both = [pod("a", 1), pod("b", 2)];
    let first = listed(&mut state, &both);
    let expected = [
        "has a@1", "wants a", "remember", "has b@2", "wants b", "remember", "complete",
    ];
    assert_eq!(first, expected);
    let again = listed(&mut state, &[pod("b", 2), pod("c", 3)]);
    let expected = [
        "has b@2", "has c@3", "wants c", "remember", "lost a", "complete",
    ];
    assert_eq!(again, expected);
}

#[test]
fn a_new_status_is_no_new_pod_and_an_edit_is() {
    let mut state = ApiState::default();
    listed(&mut state, &[pod("a", 1)]);
    let running = with(pod("a", 2), "/status/phase", json!("Running"));
    assert_eq!(applied(&mut state, &running), ["has a@2"]);
    for (pointer, value) in [
        ("/spec/activeDeadlineSeconds", json!(7)),
        ("/metadata/labels", json!({ "a": "b" })),
        ("/metadata/annotations", json!({ "a": "b" })),
        ("/metadata/deletionTimestamp", json!("2026-01-02T03:04:05Z")),
    ] {
        let edited = with(pod("a", 3), pointer, value);
        let expected = ["has a@3", "wants a", "remember"];
        assert_eq!(applied(&mut state, &edited), expected, "{pointer}");
    }
}

#[test]
fn a_pod_that_was_deleted_is_lost_once() {
    let mut state = ApiState::default();
    listed(&mut state, &[pod("a", 1)]);
    let deleted = |state: &mut ApiState| told(state, Change::Deleted(raw(&pod("a", 9))));
    assert_eq!(deleted(&mut state), ["lost a"]);
    assert_eq!(deleted(&mut state), [""; 0]);
}

#[test]
fn a_mirror_pod_is_known_and_not_run() {
    let mut state = ApiState::default();
    let annotations = json!({ "kubernetes.io/config.mirror": "static-uid" });
    let mirror = with(pod("a", 1), "/metadata/annotations", annotations);
    assert_eq!(applied(&mut state, &mirror), ["has mirror a@1"]);
    assert_eq!(applied(&mut state, &mirror), ["has mirror a@1"]);
}

#[test]
fn what_this_release_does_not_know_is_told_once_and_what_it_does_not_do_is_rejected() {
    let mut state = ApiState::default();
    let newer = with(pod("a", 1), "/spec/novelty", json!(true));
    let expected = ["has a@1", "unknown spec.novelty", "wants a", "remember"];
    assert_eq!(applied(&mut state, &newer), expected);
    let other = with(pod("b", 1), "/spec/novelty", json!(true));
    assert_eq!(
        applied(&mut state, &other),
        ["has b@1", "wants b", "remember"]
    );

    let claim = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
    let claiming = with(pod("c", 1), "/spec/volumes", claim);
    let expected = ["has c@1", "rejects c: PodFeatureUnsupported", "remember"];
    assert_eq!(applied(&mut state, &claiming), expected);
}

#[test]
fn nonsense_is_passed_over() {
    let mut state = ApiState::default();
    listed(&mut state, &[pod("a", 1)]);
    assert_eq!(applied(&mut state, &json!({ "kind": "Pod" })), ["nonsense"]);
    let broken = with(pod("b", 1), "/spec/containers", json!("none"));
    assert_eq!(
        applied(&mut state, &broken),
        ["has b@1", "rejects b: InvalidPod", "remember"]
    );
    assert_eq!(
        applied(&mut state, &pod("b", 2)),
        ["has b@2", "wants b", "remember"]
    );
}

#[test]
fn conditions_that_a_pods_gates_name_are_news_once() {
    let mut state = ApiState::default();
    let gated = with(
        pod("a", 1),
        "/spec/readinessGates",
        json!([{ "conditionType": "example.com/up" }]),
    );
    let conditions = json!([
        { "type": "Ready", "status": "False" },
        { "type": "example.com/up", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z" },
        { "type": "example.com/other", "status": "True" },
    ]);
    let set = with(gated.clone(), "/status/conditions", conditions);
    let mut gates = Gates::default();
    let mut news = |pod: &Value| {
        let told = state.apply(Change::Applied(raw(pod)), "n");
        let known = told.iter().find_map(|told| match told {
            Told::Has(pod) => Some(pod),
            _ => None,
        });
        let news = gates.news(known.unwrap());
        news.map(|(_, conditions)| {
            let kinds = conditions.iter().map(|one| one.kind.to_string());
            kinds.collect::<Vec<String>>()
        })
    };
    assert_eq!(news(&pod("b", 1)), None, "it has no gates");
    assert_eq!(news(&gated), Some(Vec::new()));
    assert_eq!(news(&gated), None);
    assert_eq!(news(&set), Some(vec!["example.com/up".to_owned()]));
    assert_eq!(news(&set), None);
    assert_eq!(news(&gated), Some(Vec::new()), "it was taken back");
}
