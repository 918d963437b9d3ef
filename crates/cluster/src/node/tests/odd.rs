//! Node objects and leases in which anything is null, absent or of another type.

use rubelet_node_plan::node_status::object::Node;
use rubelet_yaml::read_value;
use serde_json::{Value, json};
use sim_api::malformed::{with_nulls, with_wrong_type};

use super::{
    super::{lease::LeaseTask, observed_node::ObservedNode},
    *,
};

fn full() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NAME, "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"a": "b", "example.com/c": "d"}, "annotations": {"e": "f"},
            "managedFields": [{"manager": "x"}], "ownerReferences": [],
        },
        "spec": {
            "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": "p",
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
            "unschedulable": true,
        },
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}],
            "allocatable": {"cpu": "1"}, "capacity": {"cpu": "2"},
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "m",
                "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
            "config": {"error": "e"},
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "declaredFeatures": ["a"], "features": {"supplementalGroupsPolicy": true},
            "images": [{"names": ["a:1", "a:2"], "sizeBytes": 5}, {"names": ["b"], "sizeBytes": 6}],
            "nodeInfo": {
                "architecture": "amd64", "bootID": "b", "containerRuntimeVersion": "x://1",
                "kernelVersion": "6", "kubeProxyVersion": "", "kubeletVersion": "v1", "machineID": "m",
                "operatingSystem": "linux", "osImage": "o", "swap": {"capacity": 7}, "systemUUID": "s",
            },
            "phase": "", "runtimeHandlers": [{"name": "", "features": {"userNamespaces": true}}],
            "volumesAttached": [{"name": "v", "devicePath": "d"}], "volumesInUse": ["v"],
        },
    })
}

/// Nothing in it is null.
fn no_null(value: &Value, at: &str) {
    assert!(!value.is_null(), "{at}");
    match value {
        Value::Array(items) => items.iter().for_each(|item| no_null(item, at)),
        Value::Object(fields) => {
            for (name, value) in fields {
                no_null(value, &format!("{at}/{name}"));
            }
        }
        _ => {}
    }
}

fn node(value: &Value) -> (Node, usize) {
    let read = read_value::<Node>(value).unwrap();
    (read.value, read.left_out.len())
}

#[test]
fn null_in_a_node_is_the_same_as_absent() {
    for seed in 0..3000 {
        let (nulls, absent) = with_nulls(seed, &full(), &[]);
        let ((from_nulls, left_out), (from_absent, _)) = (node(&nulls), node(&absent));
        assert_eq!(from_nulls, from_absent, "seed {seed}: {nulls}");
        assert_eq!(left_out, 0, "seed {seed}: {nulls}");
    }
}

#[test]
fn a_wrong_type_in_a_node_costs_that_field() {
    for seed in 0..1000 {
        let (wrong, absent, pointer) = with_wrong_type(seed, &full(), &[]);
        assert_eq!(node(&wrong).0, node(&absent).0, "seed {seed}: {pointer}");
    }
}

#[test]
fn no_field_of_a_node_is_written_as_null() {
    no_null(&Node::default().to_json(), "");
    no_null(&node(&full()).0.to_json(), "");
}

#[tokio::test(start_paused = true)]
async fn whatever_somebody_wrote_into_the_lease_it_can_be_renewed() {
    let mut settings = NodeSettings::new(NAME);
    settings.lease_duration = Duration::from_secs(40);
    let mut seen = ObservedNode::default();
    let mut known = Node::default();
    known.metadata.uid = "u".into();
    seen.answered(known);
    let clock = Clock::following_tokio(Timestamp::from_second(BEGIN).unwrap());
    let task = LeaseTask::new(Model::new(), &settings, watch::Sender::new(seen), clock);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": NAME, "namespace": "kube-node-lease", "resourceVersion": "7", "labels": {"a": "b"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": NAME, "uid": "u"}],
        },
        "spec": {
            "holderIdentity": NAME, "leaseDurationSeconds": 40, "leaseTransitions": 1,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    });
    let good = |stamped: &Value, why: &str| {
        let (spec, owner) = (&stamped["spec"], &stamped["metadata"]["ownerReferences"][0]);
        assert_eq!(spec["holderIdentity"], NAME, "{why}");
        assert_eq!(spec["leaseDurationSeconds"], 40, "{why}");
        assert_eq!(spec["renewTime"], "2027-01-15T08:00:00.000000Z", "{why}");
        assert!(owner["uid"] == "u" || owner["kind"] != "Node", "{why}");
        no_null(stamped, "");
    };
    for seed in 0..1000 {
        let (nulls, absent) = with_nulls(seed, &lease, &[]);
        let (wrong, _, pointer) = with_wrong_type(seed, &lease, &[]);
        for odd in [nulls, absent] {
            good(&task.stamped(odd.clone()), &odd.to_string());
        }
        good(&task.stamped(wrong), &pointer);
    }
    for odd in [
        json!(null),
        json!([]),
        json!("x"),
        json!({"spec": 1, "metadata": []}),
    ] {
        good(&task.stamped(odd.clone()), &odd.to_string());
    }
}
