//! The Kubernetes form of a pod is a valid v1 Pod that says the same again.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use rubelet_api::{
    container::Container,
    parse::{ParseContext, parse},
    pod::{Pod, PodSource},
    resources::QosClass,
    status::{
        Condition, ContainerState, ContainerStatus, ContainerUser, Phase, PodStatus, Terminated,
    },
    wire::{WireContext, pod_json, pod_status_json, status_json},
};
use serde_json::json;

use crate::support::{context, parsed, raw, small};

fn at(text: &str) -> Timestamp {
    text.parse().expect("it is RFC 3339")
}

fn status() -> PodStatus {
    let ended = Terminated {
        exit_code: 137,
        reason: "OOMKilled".into(),
        message: "".into(),
        started_at: Some(at("2026-01-01T00:00:01.25Z")),
        finished_at: None,
        container_id: "1".into(),
    };
    let container = |name: &str, state| ContainerStatus {
        name: name.into(),
        image: "busybox:1.36".into(),
        image_id: "sha256:abc".into(),
        container_id: "2".into(),
        ready: true,
        started: true,
        restart_count: 1,
        state,
        last_state: Some(ended.clone()),
        user: None,
        recursive_read_only: Vec::new(),
    };
    let condition = |kind: &str, status| Condition {
        kind: kind.into(),
        status: bool::into(status),
        observed_generation: 0,
        reason: if status {
            "".into()
        } else {
            "ContainersNotReady".into()
        },
        message: "".into(),
        last_transition: at("2026-01-01T00:00:02.9Z"),
    };
    PodStatus {
        phase: Phase::Running,
        reason: "".into(),
        message: "".into(),
        start_time: at("2025-12-31T23:59:59Z"),
        pod_ips: vec!["10.1.0.5".into(), "fd00::5".into()],
        conditions: vec![condition("Ready", false), condition("PodScheduled", true)],
        observed_generation: 0,
        ephemeral_containers: vec![],
        init_containers: vec![container("init", ContainerState::Terminated(ended.clone()))],
        containers: vec![
            container(
                "a",
                ContainerState::Running {
                    started_at: at("2026-01-01T00:00:03Z"),
                },
            ),
            ContainerStatus {
                container_id: "".into(),
                last_state: None,
                ..container(
                    "b",
                    ContainerState::Waiting {
                        reason: "CrashLoopBackOff".into(),
                        message: "".into(),
                    },
                )
            },
        ],
    }
}

#[test]
fn a_status_has_every_part_in_kubernetes_form() {
    let ended = json!({
        "exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-01-01T00:00:01Z", "finishedAt": null,
        "containerID": "containerd://1",
    });
    let container = |name: &str, state| {
        json!({
            "name": name, "state": state, "lastState": {"terminated": ended}, "ready": true, "restartCount": 1,
            "image": "busybox:1.36", "imageID": "sha256:abc", "containerID": "containerd://2", "started": true,
        })
    };
    let mut waiting = container("b", json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    waiting["lastState"] = json!({});
    waiting.as_object_mut().unwrap().remove("containerID");
    let wire = WireContext {
        host_ips: &["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
        runtime: "containerd",
        ..WireContext::default()
    };
    assert_eq!(
        status_json(&status(), QosClass::Burstable, &wire),
        json!({
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:02Z"},
                {"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:02Z"},
            ],
            "hostIP": "192.0.2.1",
            "hostIPs": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}],
            "podIP": "10.1.0.5",
            "podIPs": [{"ip": "10.1.0.5"}, {"ip": "fd00::5"}],
            "startTime": "2025-12-31T23:59:59Z",
            "initContainerStatuses": [container("init", json!({"terminated": ended}))],
            "containerStatuses": [container("a", json!({"running": {"startedAt": "2026-01-01T00:00:03Z"}})), waiting],
            "qosClass": "Burstable",
        })
    );
}

#[test]
fn container_ids_are_withheld_until_the_runtime_name_is_known() {
    let value = status_json(&status(), QosClass::Burstable, &WireContext::default());
    let init = &value["initContainerStatuses"][0];
    assert!(init["state"]["terminated"].is_object());
    assert!(!value.to_string().contains("containerID"), "{value}");
}

#[test]
fn a_pod_with_its_status_is_a_valid_v1_pod() {
    let pod = parsed(include_str!("full.yaml"));
    let wire = WireContext {
        host_ips: &["192.0.2.1".parse().unwrap()],
        deletion_timestamp: Some(at("2026-02-01T00:00:00Z")),
        deletion_grace: Some(Duration::from_secs(5)),
        runtime: "containerd",
    };
    let value = pod_json(&pod, Some(&status()), &wire);
    // Nothing may get lost in the schema's own types, except times that are null.
    let typed: k8s::Pod = serde_json::from_value(value.clone()).unwrap();
    let mut again = serde_json::to_value(&typed).unwrap();
    for condition in again["status"]["conditions"].as_array_mut().unwrap() {
        condition["lastProbeTime"] = json!(null);
    }
    let ended = "/status/initContainerStatuses/0";
    for state in [
        format!("{ended}/state"),
        format!("{ended}/lastState"),
        "/status/containerStatuses/0/lastState".into(),
    ] {
        again.pointer_mut(&state).unwrap()["terminated"]["finishedAt"] = json!(null);
    }
    assert_eq!(again, value);
    assert_eq!(
        value["metadata"]["creationTimestamp"],
        "2025-12-31T23:59:59Z"
    );
    assert_eq!(
        value["metadata"]["deletionTimestamp"],
        "2026-02-01T00:00:00Z"
    );
    assert_eq!(value["metadata"]["deletionGracePeriodSeconds"], 5);
}

#[test]
fn a_containers_status_repeats_what_was_allocated_and_mounted() {
    let mut manifest = small();
    manifest["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    manifest["spec"]["containers"] = json!([
        {
            "name": "a", "image": "busybox:1.36",
            "resources": {"limits": {"memory": "64Mi", "cpu": "1"}, "requests": {"cpu": "250m"}},
            "volumeMounts": [
                {"name": "data", "mountPath": "/data"},
                {"name": "data", "mountPath": "/ro", "readOnly": true},
                {"name": "data", "mountPath": "rro", "readOnly": true, "recursiveReadOnly": "IfPossible"},
                {"name": "data", "mountPath": "/not", "readOnly": true, "recursiveReadOnly": "IfPossible"},
            ],
        },
        {"name": "b", "image": "busybox:1.36", "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
    ]);
    let pod = parsed(&manifest.to_string());
    let mut status = status();
    status.containers[0].user = Some(Box::new(ContainerUser {
        uid: 0,
        gid: 7,
        supplemental_groups: Vec::new(),
    }));
    // By the runtime's word.
    status.containers[0].recursive_read_only = vec!["/rro".into()];
    let wire = WireContext {
        runtime: "containerd",
        ..WireContext::default()
    };
    let json = pod_json(&pod, Some(&status), &wire);
    assert_eq!(json["status"], pod_status_json(&pod, &status, &wire));
    let [made, waiting] = [0, 1].map(|at| &json["status"]["containerStatuses"][at]);
    let requests = json!({"memory": "64Mi", "cpu": "250m"});
    assert_eq!(
        made["resources"],
        json!({"limits": {"memory": "64Mi", "cpu": "1"}, "requests": requests})
    );
    assert_eq!(made["allocatedResources"], requests);
    assert_eq!(made["user"], json!({"linux": {"uid": 0, "gid": 7}}));
    assert_eq!(
        made["volumeMounts"],
        json!([
            {"name": "data", "mountPath": "/data"},
            {"name": "data", "mountPath": "/ro", "readOnly": true, "recursiveReadOnly": "Disabled"},
            {"name": "data", "mountPath": "rro", "readOnly": true, "recursiveReadOnly": "Enabled"},
            {"name": "data", "mountPath": "/not", "readOnly": true, "recursiveReadOnly": "Disabled"},
        ])
    );
    // The runtime has not made it: only what will be mounted is known.
    assert_eq!(
        waiting["volumeMounts"],
        json!([{"name": "data", "mountPath": "/data"}])
    );
    for field in ["resources", "allocatedResources", "user"] {
        assert!(waiting[field].is_null(), "{field}");
    }
    // Without any resources, made: there are some, and they are empty.
    status.containers[1].container_id = "3".into();
    let json = pod_json(&pod, Some(&status), &wire);
    assert_eq!(
        json["status"]["containerStatuses"][1]["resources"],
        json!({})
    );
}

#[test]
fn a_pod_without_status_is_pending() {
    let value = pod_json(&parsed(&small().to_string()), None, &WireContext::default());
    assert_eq!(
        value["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort"})
    );
    assert_eq!(
        value["metadata"]["creationTimestamp"],
        "2026-11-21T07:08:09Z"
    );
}

/// What is left of a pod when it comes from the API server: no definitions.
fn without_definitions(pod: &Pod) -> Pod {
    let strip = |containers: &[Container]| {
        containers
            .iter()
            .map(|container| Container {
                definition: None,
                ..container.clone()
            })
            .collect()
    };
    let mut pod = pod.clone();
    pod.spec.init_containers = strip(&pod.spec.init_containers);
    pod.spec.containers = strip(&pod.spec.containers);
    pod.sandbox_definition = None;
    pod.source = PodSource::Api;
    pod
}

#[test]
fn what_was_filled_in_means_what_was_meant() {
    for text in [include_str!("full.yaml"), &small().to_string()] {
        let pod = parsed(text);
        let api = ParseContext {
            source: PodSource::Api,
            ..context()
        };
        let again = parse(raw(&pod.json), &api).unwrap();
        assert_eq!(again, without_definitions(&pod));
    }
}
