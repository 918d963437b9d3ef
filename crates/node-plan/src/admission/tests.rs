//! Tables of pods that may run here, and of pods that may not.

use rubelet_api::{
    network::{ContainerPort, Protocol},
    pod::{Pod, PodSource, RestartPolicy},
    resources::ResourceAmounts,
    scheduling::{
        NodeAffinity, NodeOperator, NodeRequirement, NodeSelectorTerm, TaintEffect, Toleration,
        TolerationOperator,
    },
    security::Profile,
};

use super::*;
use crate::test_pods::{amounts, container};

fn node() -> AdmissionNode {
    let texts = |pairs: &[(&str, &str)]| -> Texts {
        pairs
            .iter()
            .map(|&(key, value)| (key.into(), value.into()))
            .collect()
    };
    let mut node = Node::default();
    node.metadata.name = "node".into();
    node.metadata.labels = texts(&[("zone", "a"), ("cores", "4"), ("kubernetes.io/os", "linux")]);
    node.status.allocatable = texts(&[
        ("cpu", "2"),
        ("memory", "1Ki"),
        ("ephemeral-storage", "100"),
        ("pods", "3"),
        ("hugepages-2Mi", "4Mi"),
        ("example.com/dongle", "2"),
    ]);
    AdmissionNode::from_node(&node)
}

fn api_pod() -> Pod {
    Pod {
        source: PodSource::Api,
        ..crate::test_pods::pod()
    }
}

fn asking(requests: ResourceAmounts) -> Pod {
    let mut pod = api_pod();
    pod.spec.containers = vec![container("a", requests, ResourceAmounts::default())];
    pod
}

/// `REASON: MESSAGE`, or nothing for a pod that may run.
fn verdict(pod: &Pod, node: &AdmissionNode, running: &[Pod]) -> String {
    let running: Vec<&Pod> = running.iter().collect();
    match admit(pod, node, &running) {
        Ok(()) => String::new(),
        Err(rejection) => format!("{}: {}", rejection.reason, rejection.message),
    }
}

fn short_of(name: &str, requested: u64, used: u64, capacity: u64) -> String {
    format!(
        "OutOf{name}: Node didn't have enough resource: {name}, requested: {requested}, \
         used: {used}, capacity: {capacity}"
    )
}

#[test]
fn a_pod_needs_room_beside_the_others() {
    let with = |set: fn(&mut ResourceAmounts)| {
        let mut amounts = ResourceAmounts::default();
        set(&mut amounts);
        asking(amounts)
    };
    let node = node();
    let one = [asking(amounts(1500, 1000))];
    for (pod, expected) in [
        (with(|a| a.cpu = Some(500)), String::new()),
        (
            with(|a| a.cpu = Some(501)),
            short_of("cpu", 501, 1500, 2000),
        ),
        (with(|a| a.memory = Some(24)), String::new()),
        (
            with(|a| a.memory = Some(25)),
            short_of("memory", 25, 1000, 1024),
        ),
        (
            with(|a| a.ephemeral_storage = Some(101)),
            short_of("ephemeral-storage", 101, 0, 100),
        ),
        (
            with(|a| a.hugepages = vec![(2 << 20, 6 << 20)]),
            short_of("hugepages-2Mi", 6 << 20, 0, 4 << 20),
        ),
        (
            with(|a| a.hugepages = vec![(1 << 30, 1 << 30)]),
            short_of("hugepages-1Gi", 1 << 30, 0, 0),
        ),
        (
            with(|a| a.extended = vec![("example.com/dongle".into(), 3)]),
            short_of("example.com/dongle", 3, 0, 2),
        ),
        (
            with(|a| a.extended = vec![("example.com/unknown".into(), 3)]),
            String::new(),
        ),
        (
            with(|a| (a.cpu, a.memory) = (Some(3000), Some(5000))),
            short_of("cpu", 3000, 1500, 2000),
        ),
    ] {
        assert_eq!(verdict(&pod, &node, &one), expected);
    }
    let three = [api_pod(), api_pod(), api_pod()];
    assert_eq!(verdict(&api_pod(), &node, &three[..2]), "");
    assert_eq!(
        verdict(&api_pod(), &node, &three),
        short_of("pods", 1, 3, 3)
    );
}

#[test]
fn the_sandboxs_own_needs_count() {
    let mut pod = asking(amounts(1900, 1));
    pod.spec.overhead = amounts(200, 0);
    assert_eq!(verdict(&pod, &node(), &[]), short_of("cpu", 2100, 0, 2000));
}

fn requirement(key: &str, operator: NodeOperator, values: &[&str]) -> NodeRequirement {
    NodeRequirement {
        key: key.into(),
        operator,
        values: values.iter().map(|value| Box::from(*value)).collect(),
    }
}

#[test]
fn affinity_is_held_against_labels_and_name() {
    use NodeOperator::{DoesNotExist, Exists, Gt, In, Lt, NotIn, Other};
    let refused = "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    let label = |key, operator, values: &[&str]| NodeSelectorTerm {
        expressions: vec![requirement(key, operator, values)],
        fields: Vec::new(),
    };
    let field = |key, operator, values: &[&str]| NodeSelectorTerm {
        expressions: Vec::new(),
        fields: vec![requirement(key, operator, values)],
    };
    for (required, fits) in [
        (vec![], false),
        (vec![NodeSelectorTerm::default()], false),
        (vec![label("zone", In, &["a", "b"])], true),
        (vec![label("zone", In, &["b"])], false),
        (vec![label("none", In, &[""])], false),
        (vec![label("zone", NotIn, &["a"])], false),
        (vec![label("none", NotIn, &["a"])], true),
        (vec![label("zone", Exists, &[])], true),
        (vec![label("zone", DoesNotExist, &[])], false),
        (vec![label("cores", Gt, &["3"])], true),
        (vec![label("cores", Gt, &["4"])], false),
        (vec![label("cores", Lt, &["5"])], true),
        (vec![label("cores", Lt, &["5", "6"])], false),
        (vec![label("zone", Gt, &["3"])], false),
        (vec![label("cores", Gt, &["many"])], false),
        (vec![label("zone", Other("Near".into()), &["a"])], false),
        (
            vec![label("zone", In, &["b"]), label("zone", In, &["a"])],
            true,
        ),
        (vec![field("metadata.name", In, &["node"])], true),
        (vec![field("metadata.name", NotIn, &["node"])], false),
        (vec![field("metadata.name", In, &["node", "x"])], false),
        (vec![field("metadata.name", Exists, &[])], false),
        (vec![field("spec.x", In, &["node"])], false),
    ] {
        let mut pod = api_pod();
        let text = format!("{required:?}");
        pod.spec.node_affinity = Some(NodeAffinity { required });
        let expected = if fits { "" } else { refused };
        assert_eq!(verdict(&pod, &node(), &[]), expected, "{text}");
    }
    let mut pod = api_pod();
    pod.spec.node_selector.insert("zone".into(), "a".into());
    assert_eq!(verdict(&pod, &node(), &[]), "");
    pod.spec.node_selector.insert("zone".into(), "b".into());
    assert_eq!(verdict(&pod, &node(), &[]), refused);
}

#[test]
fn only_taints_that_chase_pods_away_count_and_static_pods_stay() {
    let mut node = node();
    let taint = |key: &str, effect: &str| NodeTaint {
        key: key.into(),
        value: "v".into(),
        effect: effect.into(),
    };
    node.taints = vec![taint("soft", "NoSchedule"), taint("hard", "NoExecute")];
    let refused = "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the \
                   pod didn't tolerate";
    let toleration = |key: &str, operator, value: &str, effect| Toleration {
        key: key.into(),
        operator,
        value: value.into(),
        effect,
        seconds: None,
    };
    use TolerationOperator::{Equal, Exists, Gt};
    for (toleration, fits) in [
        (toleration("hard", Equal, "v", None), true),
        (toleration("hard", Equal, "w", None), false),
        (
            toleration("hard", Exists, "", Some(TaintEffect::NoExecute)),
            true,
        ),
        (
            toleration("hard", Exists, "", Some(TaintEffect::NoSchedule)),
            false,
        ),
        (toleration("", Exists, "", None), true),
        (toleration("soft", Exists, "", None), false),
        (toleration("hard", Gt, "1", None), false),
    ] {
        let mut pod = api_pod();
        pod.spec.tolerations = vec![toleration];
        let expected = if fits { "" } else { refused };
        assert_eq!(
            verdict(&pod, &node, &[]),
            expected,
            "{:?}",
            pod.spec.tolerations
        );
    }
    assert_eq!(verdict(&crate::test_pods::pod(), &node, &[]), "");
}

#[test]
fn a_port_of_the_host_is_for_one_pod() {
    let with = |port, protocol, ip: Option<&str>| {
        let mut pod = api_pod();
        pod.spec.containers[0].ports = vec![ContainerPort {
            name: None,
            container_port: 80,
            host_port: port,
            host_ip: ip.map(Into::into),
            protocol,
        }];
        pod
    };
    let refused = "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the \
                   requested pod ports";
    let own = with(Some(80), Protocol::Tcp, Some("10.0.0.1"));
    for (other, fits) in [
        (with(Some(80), Protocol::Tcp, Some("10.0.0.1")), false),
        (with(Some(80), Protocol::Tcp, None), false),
        (with(Some(80), Protocol::Tcp, Some("10.0.0.2")), true),
        (with(Some(80), Protocol::Udp, None), true),
        (with(Some(81), Protocol::Tcp, None), true),
        (with(None, Protocol::Tcp, None), true),
    ] {
        let expected = if fits { "" } else { refused };
        assert_eq!(verdict(&own, &node(), &[other]), expected);
    }
    let everywhere = with(Some(80), Protocol::Tcp, Some("0.0.0.0"));
    assert_eq!(
        verdict(&everywhere, &node(), std::slice::from_ref(&own)),
        refused
    );
    let mut init = own.clone();
    init.spec.init_containers = init.spec.containers.clone();
    init.spec.containers[0].ports.clear();
    assert_eq!(verdict(&own, &node(), &[init.clone()]), "");
    init.spec.init_containers[0].restart_policy = Some(RestartPolicy::Always);
    assert_eq!(verdict(&own, &node(), &[init]), refused);
}

#[test]
fn what_the_system_can_not_do_is_refused() {
    let change = |change: fn(&mut Pod)| {
        let mut pod = api_pod();
        change(&mut pod);
        verdict(&pod, &node(), &[])
    };
    assert_eq!(
        change(|pod| pod.spec.node_name = "other".into()),
        "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name"
    );
    assert_eq!(
        change(|pod| pod.spec.os = Some("windows".into())),
        "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS"
    );
    assert_eq!(change(|pod| pod.spec.os = Some("linux".into())), "");
    assert_eq!(
        change(|pod| drop(
            pod.labels
                .insert("kubernetes.io/os".into(), "windows".into())
        )),
        "PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label \
         doesn't match node label"
    );
    assert_eq!(
        change(|pod| pod.spec.security.supplemental_groups_strict = true),
        "SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in \
         this node"
    );
    assert_eq!(
        change(|pod| pod.spec.security.sysctls = vec![("kernel.msgmax".into(), "1".into())]),
        "SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted"
    );
    assert_eq!(
        change(|pod| {
            let security = &mut pod.spec.containers[0].security;
            security.shared.apparmor = Some(Profile::RuntimeDefault);
        }),
        "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host"
    );
    assert_eq!(
        change(|pod| pod.spec.security.shared.apparmor = Some(Profile::Unconfined)),
        ""
    );
}

#[test]
fn the_first_reason_in_upstreams_order_is_reported() {
    let mut pod = asking(amounts(9000, 1));
    pod.spec.node_name = "other".into();
    let shortage = short_of("cpu", 9000, 0, 2000);
    assert_eq!(verdict(&pod, &node(), &[]), shortage);
    pod.spec.priority = 2_000_000_000;
    assert!(verdict(&pod, &node(), &[]).starts_with("NodeName: "));
    pod.spec.node_name = "node".into();
    assert_eq!(verdict(&pod, &node(), &[]), shortage);
}

#[test]
fn a_node_that_runs_short_takes_only_pods_that_can_be_borne() {
    let under = |memory, disk, pod: &Pod| {
        let pressure = Pressure {
            memory,
            disk,
            pid: false,
        };
        verdict(pod, &AdmissionNode { pressure, ..node() }, &[])
    };
    let best_effort = api_pod();
    let refused = "Evicted: The node had condition: [MemoryPressure]. ";
    assert_eq!(under(true, false, &best_effort), refused);
    let mut tolerant = api_pod();
    tolerant.spec.tolerations = vec![Toleration {
        key: "node.kubernetes.io/memory-pressure".into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: Some(TaintEffect::NoSchedule),
        seconds: None,
    }];
    assert_eq!(under(true, false, &tolerant), "");
    let mut burstable = api_pod();
    burstable.spec.qos = QosClass::Burstable;
    assert_eq!(under(true, false, &burstable), "");
    assert_eq!(
        under(true, true, &burstable),
        "Evicted: The node had condition: [MemoryPressure DiskPressure]. "
    );
    assert_eq!(under(true, true, &crate::test_pods::pod()), "");
}
