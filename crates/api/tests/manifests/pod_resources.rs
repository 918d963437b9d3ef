//! Resources of a whole pod: defaults, quality of service, mistakes.

use rubelet_api::{
    downward::{self, Allocatable},
    pod::PodSpec,
    resources::QosClass,
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
