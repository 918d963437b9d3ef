//! The node as a whole: what it becomes from what is seen, and what of that is sent.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    NodeFacts, NodeSettings,
    addresses::{self, HostAddresses},
    hard_thresholds::HardThresholds,
    object::{Node, NodeRuntimeHandler},
    patch::{has_changed, patch},
    registration::{correct, initial},
    update::{NodeObservation, NodeUpdate, NodeUpdateState, update},
};
use crate::eviction::Pressure;

struct Machine {
    settings: NodeSettings,
    facts: NodeFacts,
    observed: NodeObservation,
    memory: NodeUpdateState,
}

impl Machine {
    fn new() -> Self {
        let hard = [("memory.available".to_owned(), "1Gi".to_owned())].into();
        let settings = NodeSettings {
            thresholds: HardThresholds::parse(&hard).unwrap(),
            declared_features: vec!["RestartAllContainersOnContainerExits".into()],
            ..NodeSettings::new("n1")
        };
        let found = HostAddresses {
            outward: vec!["10.0.0.1".parse().unwrap()],
            ..HostAddresses::default()
        };
        Self {
            facts: NodeFacts {
                cpus: 2,
                memory: 4 << 30,
                swap: 1 << 20,
                boot_id: "boot-1".into(),
                machine_id: "machine".into(),
                system_uuid: "uuid".into(),
                kernel_version: "6.1.0".into(),
                os_image: "Debian".into(),
                os: "linux".into(),
                architecture: "amd64".into(),
                kubelet_version: "v1.36.0".into(),
                ..NodeFacts::default()
            },
            observed: NodeObservation {
                now: "2026-01-02T03:04:05.678Z".parse().unwrap(),
                addresses: addresses::choose(&settings, &found),
                nodefs: Some(10 << 30),
                pressure: Pressure::default(),
                runtime_version: "containerd://2.1.4".into(),
                handlers: vec![NodeRuntimeHandler::default()],
                supplemental_groups: Some(true),
                images: [].into(),
                problems: Vec::new(),
                port: 10250,
            },
            settings,
            memory: NodeUpdateState::default(),
        }
    }

    fn update(&mut self, shown: &Node) -> NodeUpdate {
        let (settings, facts) = (&self.settings, &self.facts);
        update(settings, facts, &self.observed, shown, &mut self.memory)
    }

    /// The created node, and the reasons of the events.
    fn born(&mut self) -> (Node, Vec<&'static str>) {
        let first = initial(&self.settings, &self.facts);
        let updated = self.update(&first);
        let reasons = updated.events.iter().map(|event| event.reason).collect();
        (updated.node, reasons)
    }

    fn later(&mut self, seconds: i64) {
        self.observed.now += jiff::SignedDuration::from_secs(seconds);
    }
}

fn reasons(updated: &NodeUpdate) -> Vec<&str> {
    updated.events.iter().map(|event| event.reason).collect()
}

#[test]
fn a_new_node_tells_everything() {
    let (node, events) = Machine::new().born();
    assert_eq!(
        events,
        [
            "NodeHasSufficientMemory",
            "NodeHasNoDiskPressure",
            "NodeHasSufficientPID"
        ]
    );
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "lastHeartbeatTime": "2026-01-02T03:04:05Z",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "reason": reason,
            "message": message,
        })
    };
    assert_eq!(
        node.to_json()["status"],
        json!({
            "addresses": [
                { "type": "InternalIP", "address": "10.0.0.1" },
                { "type": "Hostname", "address": "n1" },
            ],
            "capacity": { "cpu": "2", "ephemeral-storage": "10Gi", "memory": "4Gi", "pods": "110" },
            "allocatable": { "cpu": "2", "ephemeral-storage": "10Gi", "memory": "3Gi", "pods": "110" },
            "conditions": [
                condition(
                    "MemoryPressure",
                    "False",
                    "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available",
                ),
                condition(
                    "DiskPressure",
                    "False",
                    "KubeletHasNoDiskPressure",
                    "kubelet has no disk pressure",
                ),
                condition(
                    "PIDPressure",
                    "False",
                    "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available",
                ),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "declaredFeatures": ["RestartAllContainersOnContainerExits"],
            "features": { "supplementalGroupsPolicy": true },
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "boot-1",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.1.0",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.0",
                "machineID": "machine",
                "operatingSystem": "linux",
                "osImage": "Debian",
                "swap": { "capacity": 1_048_576 },
                "systemUUID": "uuid",
            },
            "runtimeHandlers": [{ "name": "" }],
        })
    );
}

#[test]
fn an_unchanged_node_differs_in_heartbeats_only() {
    let mut machine = Machine::new();
    let (node, _) = machine.born();
    // As the API server gives it back.
    let shown: Node = serde_json::from_value(node.to_json()).unwrap();
    assert_eq!(shown, node);
    machine.later(300);
    let updated = machine.update(&shown);
    assert!(updated.events.is_empty() && !has_changed(&shown, &updated.node));
    let beat = |kind: &str| json!({ "type": kind, "lastHeartbeatTime": "2026-01-02T03:09:05Z" });
    let conditions = [
        beat("MemoryPressure"),
        beat("DiskPressure"),
        beat("PIDPressure"),
        beat("Ready"),
    ];
    assert_eq!(
        patch(&shown, &updated.node).unwrap(),
        json!({ "status": { "conditions": conditions } })
    );
}

#[test]
fn what_others_wrote_stays() {
    let mut machine = Machine::new();
    let (mut shown, _) = machine.born();
    shown
        .status
        .capacity
        .insert("example.com/dongle".into(), "4".into());
    shown.status.conditions.insert(0, {
        let mut network = shown.status.conditions[0].clone();
        network.kind = "NetworkUnavailable".into();
        network
    });
    shown.metadata.labels.insert("role".into(), "web".into());
    let updated = machine.update(&shown);
    let patch = patch(&shown, &updated.node);
    assert_eq!(
        patch,
        Some(json!({ "status": { "allocatable": { "example.com/dongle": "4" } } }))
    );
}

#[test]
fn changes_are_sent_as_what_differs() {
    let mut machine = Machine::new();
    let (shown, _) = machine.born();
    machine.later(60);
    machine.observed.pressure.disk = true;
    machine.observed.problems = vec!["no network".to_owned()];
    let found = HostAddresses {
        outward: vec!["10.0.0.2".parse().unwrap()],
        ..HostAddresses::default()
    };
    machine.observed.addresses = addresses::choose(&machine.settings, &found);
    let updated = machine.update(&shown);
    assert_eq!(reasons(&updated), ["NodeHasDiskPressure", "NodeNotReady"]);
    assert!(has_changed(&shown, &updated.node));
    let patch = patch(&shown, &updated.node).unwrap();
    assert_eq!(
        patch["status"]["addresses"],
        json!([
            { "type": "InternalIP", "address": "10.0.0.2" },
            { "type": "Hostname", "address": "n1" },
            { "$patch": "replace" },
        ])
    );
    let ready = json!({
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": "no network",
        "lastHeartbeatTime": "2026-01-02T03:05:05Z",
        "lastTransitionTime": "2026-01-02T03:05:05Z",
    });
    assert_eq!(patch["status"]["conditions"][3], ready);
    assert_eq!(patch["metadata"], Value::Null);
}

#[test]
fn a_reboot_is_reported_once() {
    let mut machine = Machine::new();
    let (shown, _) = machine.born();
    machine.facts.boot_id = "boot-2".into();
    let updated = machine.update(&shown);
    assert_eq!(reasons(&updated), ["Rebooted"]);
    assert_eq!(
        updated.events[0].message,
        "Node n1 has been rebooted, boot id: boot-2"
    );
    assert!(updated.events[0].warning);
    assert!(reasons(&machine.update(&shown)).is_empty());
    assert_eq!(&*updated.node.status.node_info.boot_id, "boot-2");
}

#[test]
fn cordoning_is_reported() {
    let mut machine = Machine::new();
    let (mut shown, _) = machine.born();
    for (unschedulable, expected) in [
        (true, vec!["NodeNotSchedulable"]),
        (true, vec![]),
        (false, vec!["NodeSchedulable"]),
    ] {
        shown.spec.unschedulable = unschedulable;
        let updated = machine.update(&shown);
        assert_eq!(reasons(&updated), expected);
        for event in &updated.events {
            assert_eq!(
                event.message,
                format!("Node n1 status is now: {}", event.reason)
            );
        }
    }
}

#[test]
fn a_node_that_was_given_up_comes_back_with_a_new_time_and_an_event() {
    let mut machine = Machine::new();
    let (mut shown, _) = machine.born();
    let lost: Timestamp = "2026-01-02T03:10:00Z".parse().unwrap();
    for condition in &mut shown.status.conditions {
        condition.status = "Unknown".into();
        condition.reason = "NodeStatusUnknown".into();
        condition.last_transition_time = Some(lost);
    }
    machine.later(600);
    let updated = machine.update(&shown);
    assert_eq!(reasons(&updated).last(), Some(&"NodeReady"));
    let ready = updated.node.status.condition("Ready").unwrap();
    let back: Timestamp = "2026-01-02T03:14:05Z".parse().unwrap();
    assert_eq!(ready.last_transition_time, Some(back));
}

#[test]
fn what_can_not_be_measured_now_stays_as_it_was() {
    let mut machine = Machine::new();
    let (shown, _) = machine.born();
    machine.observed.nodefs = None;
    machine.observed.runtime_version = "".into();
    machine.observed.addresses = addresses::choose(&machine.settings, &HostAddresses::default());
    let updated = machine.update(&shown);
    assert_eq!(updated.node, shown);
    assert_eq!(
        updated
            .address_problem
            .map(|problem| problem.to_string())
            .as_deref(),
        Some("can't get ip address of node n1; set the address with --node-ip")
    );
}

#[test]
fn a_node_whose_disk_can_not_be_measured_from_the_begin_on_is_not_ready() {
    let mut machine = Machine::new();
    machine.observed.nodefs = None;
    let (node, _) = machine.born();
    let ready = node.status.condition("Ready").unwrap();
    assert_eq!(
        (&*ready.status, &*ready.message),
        (
            "False",
            "missing node capacity for resources: ephemeral-storage"
        )
    );
}

#[test]
fn labels_that_the_scheduler_needs_are_put_back() {
    let mut machine = Machine::new();
    let (mut shown, _) = machine.born();
    shown
        .metadata
        .labels
        .insert("kubernetes.io/os".into(), "x".into());
    shown.metadata.labels.remove("kubernetes.io/hostname");
    let updated = machine.update(&shown);
    assert!(has_changed(&shown, &updated.node));
    assert_eq!(
        patch(&shown, &updated.node),
        Some(json!({ "metadata": { "labels": { "kubernetes.io/os": "linux" } } }))
    );
}

#[test]
fn a_node_of_another_kubelet_is_taken_over_with_one_patch() {
    let mut machine = Machine::new();
    let (mut shown, _) = machine.born();
    shown
        .status
        .capacity
        .insert("hugepages-1Gi".into(), "0".into());
    shown
        .status
        .allocatable
        .insert("hugepages-1Gi".into(), "0".into());
    shown
        .status
        .capacity
        .insert("nvidia.com/gpu".into(), "8".into());
    shown
        .status
        .allocatable
        .insert("nvidia.com/gpu".into(), "8".into());
    shown.status.volumes_in_use = vec!["kubernetes.io/csi/x".into()];
    shown.status.node_info.kubelet_version = "v1.35.2".into();
    shown.metadata.annotations.clear();
    let mut corrected = shown.clone();
    correct(&machine.settings, &machine.facts, &mut corrected);
    let updated = machine.update(&corrected);
    assert_eq!(
        patch(&shown, &updated.node).unwrap(),
        json!({
            "metadata": { "annotations": {
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            } },
            "status": {
                "capacity": { "hugepages-1Gi": null, "nvidia.com/gpu": "0" },
                "allocatable": { "hugepages-1Gi": null, "nvidia.com/gpu": "0" },
                "nodeInfo": { "kubeletVersion": "v1.36.0" },
                "volumesInUse": null,
            },
        })
    );
}
