//! Resources of a whole pod: defaults, quality of service, mistakes, status.

use rubelet_api::{
    downward::{self, Allocatable},
    pod::{Pod, PodSpec},
    resources::QosClass,
    status::{Phase, PodStatus},
    wire::{WireContext, pod_status_json},
};
use serde_json::{Value, json};

use crate::support::{mistakes, parsed, set, with};

const MIB: u64 = 1 << 20;

/// A pod with these resources, an init container, and a container with resources of its own.
fn pod(own: Value, init: &Value, main: Value) -> Value {
    let mut pod = with("/spec/resources", own);
    set(
        &mut pod,
        "/spec/initContainers",
        json!([{"name": "init", "image": "a", "resources": init}]),
    );
    set(&mut pod, "/spec/containers/0/resources", main);
    pod
}

fn spec(own: Value, main: Value) -> PodSpec {
    parsed(&pod(own, &json!({}), main).to_string()).spec
}

#[test]
fn requests_that_are_missing_are_those_of_the_containers_or_the_limits() {
    let own = spec(
        json!({"limits": {"cpu": 2, "memory": "64Mi"}}),
        json!({"requests": {"cpu": "300m"}}),
    );
    let resources = own.resources.expect("they are written");
    assert_eq!(resources.requests.cpu, Some(300), "of the container");
    assert_eq!(resources.requests.memory, Some(64 * MIB), "the limit");
    assert_eq!(
        (resources.limits.cpu, resources.limits.memory),
        (Some(2000), Some(64 * MIB))
    );
    assert_eq!(own.qos, QosClass::Burstable);

    let pages = json!({"limits": {"hugepages-2Mi": "4Mi", "memory": "8Mi"}});
    let own = spec(json!({"requests": {"cpu": "1"}}), pages)
        .resources
        .expect("they are written");
    assert_eq!(own.requests.hugepages, [(2 * MIB, 4 * MIB)]);
    assert_eq!(own.limits.hugepages, [(2 * MIB, 4 * MIB)]);
    assert_eq!(own.requests.memory, Some(8 * MIB));
    assert_eq!(own.limits.memory, None);

    assert_eq!(spec(Value::Null, json!({})).resources, None);
}

#[test]
fn the_quality_of_service_follows_from_the_pods_own_resources() {
    let both = json!({"cpu": "1", "memory": "64Mi"});
    for (own, main, expected) in [
        (json!({"limits": both}), json!({}), QosClass::Guaranteed),
        (
            json!({"limits": both}),
            json!({"limits": {"memory": "32Mi"}}),
            // The request of the pod is that of the container.
            QosClass::Burstable,
        ),
        (
            json!({"limits": both, "requests": both}),
            json!({"limits": {"memory": "32Mi"}}),
            QosClass::Guaranteed,
        ),
        (
            json!({"limits": {"cpu": "1"}}),
            json!({}),
            QosClass::Burstable,
        ),
        (
            json!({"requests": {"memory": "64Mi"}}),
            json!({"limits": {"memory": "32Mi"}}),
            QosClass::Burstable,
        ),
    ] {
        assert_eq!(
            spec(own.clone(), main.clone()).qos,
            expected,
            "{own} {main}"
        );
    }
}

#[test]
fn a_container_without_a_limit_sees_that_of_its_pod() {
    let mut pod = pod(json!({"limits": {"cpu": "2"}}), &json!({}), json!({}));
    let reference = json!({"resourceFieldRef": {"resource": "limits.cpu"}});
    set(
        &mut pod,
        "/spec/containers/0/env",
        json!([{"name": "CPU", "valueFrom": reference}]),
    );
    let pod = parsed(&pod.to_string());
    let container = &pod.spec.containers[0];
    let rubelet_api::container::EnvValue::Resource(field) = &container.env[0].value else {
        panic!("{:?}", container.env);
    };
    let node = Allocatable {
        cpu: 8000,
        memory: 1,
    };
    assert_eq!(
        downward::resource(&pod, Some(container), field, node).unwrap(),
        "2"
    );
}

#[test]
fn containers_that_exceed_their_pod_are_mistakes() {
    for (own, init, main, expected) in [
        (
            json!({"requests": {"cpu": "300m"}}),
            json!({"requests": {"cpu": "400m"}}),
            json!({"requests": {"cpu": "200m"}}),
            "spec.resources.requests[cpu]: Invalid value: \"300m\": must be at least 400m, which the containers request together",
        ),
        (
            json!({"limits": {"memory": "1Mi"}}),
            json!({}),
            json!({"requests": {"memory": "2Mi"}}),
            "spec.resources.limits[memory]: Invalid value: \"1048576\": must be at least 2097152, which the containers request together",
        ),
        (
            json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}),
            json!({}),
            json!({"limits": {"cpu": "2"}, "requests": {"cpu": "100m"}}),
            "spec.resources.limits[cpu]: Invalid value: \"1000m\": must be at least 2000m, the limit of one of the containers",
        ),
        (
            json!({"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}),
            json!({}),
            json!({"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}),
            "spec.resources.limits: Invalid value: 2097152: must be at least 4194304 bytes for pages of 2097152 bytes, the limits of the containers together",
        ),
        (
            json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            json!({}),
            json!({}),
            "spec.resources.requests[cpu]: Invalid value: \"2\": must not exceed the limit of 1",
        ),
        (
            json!({"limits": {"ephemeral-storage": "1Gi"}}),
            json!({}),
            json!({}),
            "spec.resources.limits[ephemeral-storage]: Unsupported value: \"ephemeral-storage\": supported values: \"cpu\", \"memory\", \"hugepages-SIZE\"",
        ),
    ] {
        let pod = pod(own, &init, main);
        assert_eq!(mistakes(&pod.to_string()), [expected], "{pod}");
    }
}

/// `allocatedResources` and `resources` of the status of a pod.
fn shown(pod: &Pod, phase: Phase) -> [Value; 2] {
    let status = PodStatus {
        phase,
        reason: "".into(),
        message: "".into(),
        start_time: "2026-01-01T00:00:00Z".parse().expect("a time"),
        pod_ips: Vec::new(),
        conditions: Vec::new(),
        observed_generation: 0,
        init_containers: Vec::new(),
        containers: Vec::new(),
        ephemeral_containers: Vec::new(),
    };
    let json = pod_status_json(pod, &status, &WireContext::default());
    ["allocatedResources", "resources"].map(|field| json[field].clone())
}

#[test]
fn the_status_has_what_the_pod_may_use() {
    let init = json!({"requests": {"cpu": "100m", "memory": "1Gi"}});
    let main = json!({
        "requests": {"cpu": "300m", "memory": "64Mi", "ephemeral-storage": "1k"},
        "limits": {"memory": "128Mi", "hugepages-2Mi": "4Mi"},
    });
    let mut pod = parsed(&pod(Value::Null, &init, main).to_string());
    (pod.spec.overhead.cpu, pod.spec.overhead.memory) = (Some(10), Some(MIB));
    let requests = json!({
        "cpu": "310m", "memory": "1025Mi", "ephemeral-storage": "1000", "hugepages-2Mi": "4Mi",
    });
    let limits = json!({"memory": "129Mi", "hugepages-2Mi": "4Mi"});
    assert_eq!(
        shown(&pod, Phase::Pending),
        [
            requests.clone(),
            json!({"requests": requests, "limits": limits})
        ]
    );
    // One container is not limited, so the pod is not.
    assert_eq!(
        shown(&pod, Phase::Running),
        [
            requests,
            json!({"requests": {"cpu": "310m", "memory": "1025Mi"}})
        ]
    );
}

#[test]
fn the_status_has_the_pods_own_resources_where_it_has_them() {
    let own = json!({"requests": {"memory": "1Gi"}, "limits": {"cpu": "2"}});
    let main = json!({"requests": {"cpu": "1m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}});
    let pod = pod(own, &json!({"limits": {"memory": "32Mi"}}), main);
    let pod = parsed(&pod.to_string());
    let requests = json!({"cpu": "1m", "memory": "1Gi"});
    let resources = json!({"requests": requests, "limits": {"cpu": "2", "memory": "64Mi"}});
    for phase in [Phase::Pending, Phase::Running, Phase::Succeeded] {
        assert_eq!(
            shown(&pod, phase),
            [requests.clone(), resources.clone()],
            "{phase:?}"
        );
    }
}

#[test]
fn the_status_of_a_pod_without_resources_has_none() {
    let pod = |main| parsed(&pod(Value::Null, &json!({}), main).to_string());
    let little = pod(json!({"requests": {"cpu": "2m"}}));
    let requests = json!({"cpu": "2m"});
    assert_eq!(
        shown(&little, Phase::Running),
        [requests, json!({})],
        "the kernel can't tell it from none"
    );
    assert_eq!(
        shown(&pod(json!({})), Phase::Running),
        [Value::Null, json!({})]
    );
}
