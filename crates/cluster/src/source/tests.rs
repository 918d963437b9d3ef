//! What a watch of the API server makes of pods.

use rubelet_api::{pod::PodSpec, status::PodStatus, wire::status_from_json};
use rubelet_kube::Change;
use serde_json::{Value, json, value::RawValue};
use sim_api::malformed::{with_nulls, with_wrong_type};

use super::{
    readiness_gates::ReadinessGates,
    state::{ApiState, Json, SourceUpdate},
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
    let short = |told: SourceUpdate| match told {
        SourceUpdate::UnreadableFields(_, fields) if fields.is_empty() => None,
        SourceUpdate::UnreadableFields(name, fields) => {
            let fields: Vec<&str> = fields.iter().map(|field| &*field.field).collect();
            Some(format!("unread {}: {}", name.name, fields.join(" ")))
        }
        other => Some(named(other)),
    };
    state
        .apply(change, "n")
        .into_iter()
        .filter_map(short)
        .collect()
}

fn named(told: SourceUpdate) -> String {
    match told {
        SourceUpdate::Observed(pod) => {
            let kind = if pod.mirror.is_some() { "mirror " } else { "" };
            format!("has {kind}{}@{}", pod.name.name, pod.resource_version)
        }
        SourceUpdate::Removed(uid) => {
            format!("lost {}", uid.as_str().trim_start_matches("uid-of-"))
        }
        SourceUpdate::Desired(pod, None) => format!("wants {}", pod.name.name),
        SourceUpdate::Desired(pod, Some(rejection)) => {
            format!("rejects {}: {}", pod.name.name, rejection.reason)
        }
        SourceUpdate::Persist(..) => "remember".to_owned(),
        SourceUpdate::UnknownFields(_, fields) => format!("unknown {}", fields.join(" ")),
        SourceUpdate::ResizeInfeasible(pod, _) => format!("keeps {}", pod.name.name),
        SourceUpdate::UnreadableFields(..) => unreachable!("written by the caller"),
        SourceUpdate::Invalid(_) => "invalid".to_owned(),
        SourceUpdate::ListComplete => "complete".to_owned(),
    }
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
fn what_this_release_does_not_know_is_reported_once_and_what_it_does_not_do_is_rejected() {
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
fn a_resize_changes_nothing_and_is_reported_once() {
    let mut state = ApiState::default();
    let asks = |generation: i64, memory: &str| {
        let pod = with(pod("a", 1), "/metadata/generation", json!(generation));
        let resources = json!({"limits": {"memory": memory}, "requests": {"memory": memory}});
        with(pod, "/spec/containers/0/resources", resources)
    };
    let memory = |state: &mut ApiState, pod: &Value| {
        let told = state.apply(Change::Applied(raw(pod)), "n");
        let short: Vec<String> = told
            .iter()
            .filter_map(|one| match one {
                SourceUpdate::Desired(pod, None) => Some(format!(
                    "{:?} {:?}",
                    pod.spec.containers[0].resources.limits.memory,
                    pod.resize_infeasible.is_some()
                )),
                SourceUpdate::ResizeInfeasible(..) => Some("event".to_owned()),
                _ => None,
            })
            .collect();
        short.join(", ")
    };
    assert_eq!(memory(&mut state, &asks(1, "100")), "Some(100) false");
    assert_eq!(memory(&mut state, &asks(2, "200")), "event, Some(100) true");
    let labelled = with(asks(2, "200"), "/metadata/labels", json!({"a": "b"}));
    assert_eq!(memory(&mut state, &labelled), "Some(100) true");
    assert_eq!(memory(&mut state, &asks(3, "300")), "event, Some(100) true");
    assert_eq!(memory(&mut state, &asks(4, "100")), "Some(100) false");
    // The next agent has the status only.
    let status = json!([{
        "name": "main", "resources": {"limits": {"memory": "100"}},
        "allocatedResources": {"memory": "100"},
    }]);
    let resized = with(asks(5, "200"), "/status/containerStatuses", status);
    let mut next = ApiState::default();
    assert_eq!(memory(&mut next, &resized), "event, Some(100) true");
}

#[test]
fn nonsense_is_passed_over() {
    let mut state = ApiState::default();
    listed(&mut state, &[pod("a", 1)]);
    assert_eq!(applied(&mut state, &json!({ "kind": "Pod" })), ["invalid"]);
    let broken = with(pod("b", 1), "/spec/containers", json!("none"));
    assert_eq!(
        applied(&mut state, &broken),
        [
            "unread b: spec.containers",
            "has b@1",
            "rejects b: InvalidPod",
            "remember"
        ]
    );
    assert_eq!(
        applied(&mut state, &pod("b", 2)),
        ["has b@2", "wants b", "remember"]
    );
}

#[test]
fn one_pod_that_cannot_be_read_does_not_end_another() {
    let mut state = ApiState::default();
    listed(&mut state, &[pod("a", 1), pod("b", 1), pod("c", 1)]);
    let odd = with(pod("a", 2), "/metadata/uid", json!(7));
    let told = listed(&mut state, &[odd.clone(), pod("c", 1)]);
    assert_eq!(told, ["invalid", "has c@1", "lost b", "complete"]);
    let nameless = with(odd, "/metadata/name", json!([]));
    let told = listed(&mut state, &[nameless, json!(null), json!("x")]);
    assert_eq!(told, ["invalid", "invalid", "invalid", "complete"]);
    assert_eq!(listed(&mut state, &[]), ["lost a", "lost c", "complete"]);
}

#[test]
fn a_uid_that_leads_out_of_a_directory_is_none() {
    let mut state = ApiState::default();
    for uid in ["", "../../x", "a/b", ".", "a b"] {
        let odd = with(pod("a", 2), "/metadata/uid", json!(uid));
        assert_eq!(applied(&mut state, &odd), ["invalid"], "{uid}");
    }
}

#[test]
fn null_and_absent_and_empty_ask_for_the_same_pod() {
    let full = pod("a", 1);
    for (pointer, value) in [
        ("/metadata/labels", json!(null)),
        ("/metadata/annotations", json!(null)),
        ("/metadata/ownerReferences", json!(null)),
        ("/metadata/finalizers", json!([null])),
        ("/spec/initContainers", json!(null)),
        ("/spec/volumes", json!([])),
        ("/spec/securityContext", json!(null)),
        ("/spec/containers/0/env", json!(null)),
        ("/spec/containers/0/args", json!(null)),
        ("/spec/containers/0/securityContext", json!(null)),
        ("/spec/containers/0/resources", json!({"limits": null})),
        ("/spec/nodeSelector", json!(null)),
        ("/spec/priority", json!(null)),
        ("/status", json!(null)),
        ("/status/phase", json!(null)),
        ("/status/conditions", json!([null])),
    ] {
        let mut state = ApiState::default();
        let odd = with(full.clone(), pointer, value);
        let told = applied(&mut state, &odd);
        assert_eq!(told, ["has a@1", "wants a", "remember"], "{pointer}");
    }
}

#[test]
fn a_field_of_the_wrong_type_rejects_the_pod_where_it_decides_what_runs() {
    for (pointer, value, field) in [
        (
            "/spec/containers/0/securityContext",
            json!("none"),
            "spec.containers[0].securityContext",
        ),
        (
            "/spec/containers/0/env",
            json!({"a": "b"}),
            "spec.containers[0].env",
        ),
        ("/spec/hostNetwork", json!("no"), "spec.hostNetwork"),
        (
            "/spec/securityContext",
            json!({"runAsNonRoot": "true"}),
            "spec.securityContext.runAsNonRoot",
        ),
        (
            "/spec/runtimeClassName",
            json!(["kata"]),
            "spec.runtimeClassName",
        ),
        (
            "/metadata/annotations",
            json!({"x": 1}),
            "metadata.annotations.x",
        ),
        ("/metadata/labels", json!([]), "metadata.labels"),
    ] {
        let mut state = ApiState::default();
        let odd = with(pod("a", 1), pointer, value);
        let told = applied(&mut state, &odd);
        assert!(
            told[0].starts_with(&format!("unread a: {field}")),
            "{told:?}"
        );
        assert_eq!(
            told[1..],
            ["has a@1", "rejects a: InvalidPod", "remember"],
            "{pointer}"
        );
    }
    for (pointer, value, field) in [
        (
            "/metadata/ownerReferences",
            json!({}),
            "metadata.ownerReferences",
        ),
        ("/metadata/finalizers", json!("x"), "metadata.finalizers"),
        (
            "/metadata/creationTimestamp",
            json!(7),
            "metadata.creationTimestamp",
        ),
    ] {
        let mut state = ApiState::default();
        let odd = with(pod("a", 1), pointer, value);
        let expected = [
            &*format!("unread a: {field}"),
            "has a@1",
            "wants a",
            "remember",
        ];
        assert_eq!(applied(&mut state, &odd), expected);
        assert_eq!(
            applied(&mut state, &odd),
            [expected[0], expected[1]],
            "still so"
        );
    }
}

/// A pod with a field of most kinds.
fn full() -> Value {
    let probe = json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1,
        "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3});
    let mut full = pod("a", 1);
    full["metadata"]["labels"] = json!({"app": "a"});
    full["metadata"]["annotations"] = json!({"x": "y"});
    full["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}]);
    full["metadata"]["finalizers"] = json!(["a/b"]);
    full["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    full["spec"]["initContainers"] = json!([{"name": "i", "image": "i:1", "command": ["true"]}]);
    full["spec"]["volumes"] = json!([
        {"name": "e", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 420, "items": [{"key": "k", "path": "p"}]}},
    ]);
    full["spec"]["securityContext"] = json!({"runAsUser": 7, "fsGroup": 8, "supplementalGroups": [9],
        "seccompProfile": {"type": "RuntimeDefault"}});
    full["spec"]["nodeSelector"] = json!({"a": "b"});
    full["spec"]["tolerations"] =
        json!([{"key": "k", "operator": "Exists", "effect": "NoExecute"}]);
    full["spec"]["imagePullSecrets"] = json!([{"name": "p"}]);
    full["spec"]["hostNetwork"] = json!(false);
    full["spec"]["enableServiceLinks"] = json!(true);
    let container = &mut full["spec"]["containers"][0];
    container["args"] = json!(["a", "b"]);
    container["env"] = json!([{"name": "A", "value": "b"},
        {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}]);
    container["ports"] = json!([{"containerPort": 80, "name": "http", "protocol": "TCP"}]);
    container["resources"] = json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "100m"}});
    container["securityContext"] = json!({"privileged": false, "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": false});
    container["livenessProbe"] = probe;
    container["volumeMounts"] = json!([{"name": "e", "mountPath": "/e", "readOnly": true}]);
    full["status"] = json!({
        "phase": "Running", "startTime": "2026-01-01T00:00:00Z", "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}], "hostIPs": [{"ip": "192.0.2.7"}], "qosClass": "Burstable",
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "r", "message": "m"}],
        "containerStatuses": [{"name": "main", "image": "app:1", "imageID": "i", "containerID": "x://1",
            "ready": true, "started": true, "restartCount": 3,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error",
                "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:00Z"}}}],
    });
    full
}

/// What is read of a pod: what is to run or why nothing is, and the status.
fn read(
    value: &Value,
) -> (
    Option<PodSpec>,
    Option<String>,
    Option<PodStatus>,
    Vec<String>,
) {
    let told = ApiState::default().apply(Change::Applied(raw(value)), "n");
    let (mut spec, mut rejected, mut status, mut unread) = (None, None, None, Vec::new());
    for one in told {
        match one {
            SourceUpdate::Desired(pod, rejection) => {
                spec = Some(pod.spec.clone());
                rejected = rejection.map(|one| one.message.to_string());
            }
            SourceUpdate::Observed(pod) => {
                let shown: Value = serde_json::from_str(&pod.status).unwrap();
                status = status_from_json(&shown);
            }
            SourceUpdate::UnreadableFields(_, fields) => {
                unread.extend(fields.into_iter().map(|one| one.field));
            }
            SourceUpdate::Invalid(invalid) => panic!("{invalid:?}"),
            _ => {}
        }
    }
    (spec, rejected, status, unread)
}

const KEPT: [&str; 3] = ["/metadata/name", "/metadata/namespace", "/metadata/uid"];

#[test]
fn null_in_a_pod_is_the_same_as_absent() {
    let (spec, rejected, status, unread) = read(&full());
    assert!(spec.is_some() && status.is_some());
    assert_eq!((rejected, unread), (None, vec![]));
    for seed in 0..1500 {
        let (nulls, absent) = with_nulls(seed, &full(), &KEPT);
        assert_eq!(read(&nulls), read(&absent), "seed {seed}: {nulls}");
    }
}

#[test]
fn a_wrong_type_in_a_pod_never_lets_it_run_with_less() {
    for seed in 0..1500 {
        let (wrong, absent, pointer) = with_wrong_type(seed, &full(), &KEPT);
        let (spec, rejected, status, unread) = read(&wrong);
        let decides = ["/spec", "/metadata/labels", "/metadata/annotations"]
            .iter()
            .any(|start| pointer.starts_with(start))
            || pointer == "/metadata"
            || ["/apiVersion", "/kind"].contains(&&*pointer);
        let is_status = pointer.starts_with("/status");
        if decides {
            assert!(
                rejected.is_some() && !unread.is_empty(),
                "seed {seed}: {pointer}"
            );
        } else {
            let (expected, _, its_status, _) = read(&absent);
            assert_eq!(
                (spec, rejected, status),
                (expected, None, its_status),
                "seed {seed}: {pointer}"
            );
            assert!(is_status || !unread.is_empty(), "seed {seed}: {pointer}");
        }
    }
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
    let mut gates = ReadinessGates::default();
    let mut news = |pod: &Value| {
        let told = state.apply(Change::Applied(raw(pod)), "n");
        let known = told.iter().find_map(|told| match told {
            SourceUpdate::Observed(pod) => Some(pod),
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
