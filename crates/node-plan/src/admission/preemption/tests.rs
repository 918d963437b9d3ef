//! Tables of who has to go for a critical pod.

use rubelet_api::{pod::PodSource, resources::ResourceAmounts};
use rubelet_base::PodName;

use super::*;
use crate::{
    node_status::object::Node,
    test_pods::{amounts, container},
};

/// A node with 2 cores, 1000 bytes of memory and room for so many pods.
fn node(pods: &str) -> AdmissionNode {
    let mut node = Node::default();
    node.metadata.name = "node".into();
    let amounts = [("cpu", "2"), ("memory", "1000"), ("pods", pods)];
    node.status.allocatable = amounts
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    AdmissionNode::from_node(&node)
}

fn pod(name: &str, qos: QosClass, cpu: u64, memory: u64) -> Pod {
    let mut pod = Pod {
        source: PodSource::Api,
        name: PodName::new("default", name),
        ..crate::test_pods::pod()
    };
    let requests = match qos {
        QosClass::BestEffort => ResourceAmounts::default(),
        _ => amounts(cpu, memory),
    };
    pod.spec.containers = vec![container("a", requests, ResourceAmounts::default())];
    pod.spec.qos = qos;
    pod
}

fn critical(cpu: u64, memory: u64) -> Pod {
    let mut pod = pod("critical", QosClass::Burstable, cpu, memory);
    pod.spec.priority = 2_000_001_000;
    pod
}

/// The names of those who go; `none` if nobody's end would help.
fn gone(pod: &Pod, node: &AdmissionNode, running: &[Pod]) -> String {
    let running: Vec<&Pod> = running.iter().collect();
    match preemption(pod, node, &running) {
        Some(found) => {
            let names: Vec<&str> = found.victims.iter().map(|pod| &*pod.name.name).collect();
            names.join(" ")
        }
        None => "none".to_owned(),
    }
}

#[test]
fn as_few_and_as_unimportant_pods_go_as_will_do() {
    use QosClass::{BestEffort, Burstable, Guaranteed};
    for (what, wanted, running, expected) in [
        (
            "what asks for nothing frees nothing",
            critical(0, 200),
            vec![
                pod("free", BestEffort, 0, 0),
                pod("burst", Burstable, 100, 900),
            ],
            "burst",
        ),
        (
            "guaranteed pods go last",
            critical(0, 200),
            vec![
                pod("sure", Guaranteed, 100, 500),
                pod("burst", Burstable, 100, 400),
            ],
            "burst",
        ),
        (
            "guaranteed pods go where the others are not enough",
            critical(0, 700),
            vec![
                pod("sure", Guaranteed, 100, 500),
                pod("burst", Burstable, 100, 400),
            ],
            "burst sure",
        ),
        (
            "a burstable pod stays if what has to go without it is enough",
            critical(0, 600),
            vec![
                pod("sure", Guaranteed, 100, 700),
                pod("burst", Burstable, 100, 200),
            ],
            "sure",
        ),
        (
            "one pod is better than two",
            critical(0, 400),
            vec![
                pod("small", Burstable, 100, 200),
                pod("large", Burstable, 100, 450),
                pod("middle", Burstable, 100, 250),
            ],
            "large",
        ),
        (
            "of two that are enough the smaller one goes",
            critical(0, 100),
            vec![
                pod("large", Burstable, 100, 700),
                pod("small", Burstable, 100, 300),
            ],
            "small",
        ),
        (
            "both resources count",
            critical(1500, 500),
            vec![
                pod("cores", Burstable, 1500, 100),
                pod("memory", Burstable, 100, 800),
            ],
            "cores memory",
        ),
        (
            "all of them are not enough",
            critical(0, 1001),
            vec![pod("burst", Burstable, 100, 900)],
            "none",
        ),
        (
            "there is room",
            critical(0, 100),
            vec![pod("burst", Burstable, 100, 900)],
            "none",
        ),
    ] {
        assert_eq!(gone(&wanted, &node("9"), &running), expected, "{what}");
    }
}

#[test]
fn a_place_is_a_resource_that_each_pod_frees() {
    use QosClass::{BestEffort, Guaranteed};
    let running = [pod("sure", Guaranteed, 1, 1), pod("free", BestEffort, 0, 0)];
    assert_eq!(gone(&critical(1, 1), &node("2"), &running), "free");
}

#[test]
fn a_preemption_counts_for_the_first_resource_that_is_missing() {
    let running = [pod("full", QosClass::Burstable, 2000, 1000)];
    let running: Vec<&Pod> = running.iter().collect();
    for (cpu, memory, pods, expected) in [
        (1, 1, "1", "pods"),
        (1, 1, "9", "cpu"),
        (0, 1, "9", "memory"),
    ] {
        let found = preemption(&critical(cpu, memory), &node(pods), &running).unwrap();
        assert_eq!(&*found.resource, expected);
    }
}

#[test]
fn only_critical_pods_take_places_and_only_from_lesser_ones() {
    use QosClass::Burstable;
    let full = |priority, source| {
        let mut pod = pod("full", Burstable, 100, 1000);
        pod.spec.priority = priority;
        pod.source = source;
        vec![pod]
    };
    let lesser = full(1000, PodSource::Api);
    let node = node("9");
    assert_eq!(gone(&critical(0, 1), &node, &lesser), "full");
    let ordinary = pod("ordinary", Burstable, 0, 1);
    assert_eq!(gone(&ordinary, &node, &lesser), "none");
    let mut fixed = ordinary.clone();
    fixed.source = PodSource::File;
    assert_eq!(gone(&fixed, &node, &lesser), "full");
    for (priority, source, expected) in [
        (2_000_000_000, PodSource::Api, "full"),
        (2_000_001_000, PodSource::Api, "none"),
        (2_000_000_000, PodSource::File, "full"),
        (0, PodSource::File, "none"),
    ] {
        let running = full(priority, source);
        assert_eq!(
            gone(&critical(0, 1), &node, &running),
            expected,
            "{priority}"
        );
    }
}

#[test]
fn no_pod_is_preempted_for_a_pod_rejected_for_another_reason() {
    let running = [pod("full", QosClass::Burstable, 100, 1000)];
    let mut elsewhere = critical(0, 1);
    elsewhere.spec.node_name = "other".into();
    assert_eq!(gone(&elsewhere, &node("9"), &running), "none");
    let mut windows = critical(0, 1);
    windows.spec.os = Some("windows".into());
    assert_eq!(gone(&windows, &node("9"), &running), "none");
}
