//! Tests of `scheduler`.

use super::*;

#[test]
fn taints_are_tolerated_as_documented() {
    let taint = json!({ "key": "a", "value": "b", "effect": "NoSchedule" });
    for (toleration, tolerated) in [
        (json!({ "operator": "Exists" }), true),
        (json!({ "key": "a", "operator": "Exists" }), true),
        (json!({ "key": "a", "value": "b" }), true),
        (json!({ "key": "a", "value": "c" }), false),
        (
            json!({ "key": "a", "operator": "Exists", "effect": "NoExecute" }),
            false,
        ),
        (json!({ "key": "c", "operator": "Exists" }), false),
    ] {
        assert_eq!(tolerates(&toleration, &taint), tolerated, "{toleration}");
    }
}

#[test]
fn a_pod_with_a_missing_claim_is_not_scheduled() {
    for (volume, reason) in [
        (json!({ "name": "v", "emptyDir": {} }), None),
        (
            json!({ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }),
            Some(r#"persistentvolumeclaim "data" not found"#),
        ),
        (
            json!({ "name": "v", "ephemeral": {} }),
            Some(r#"persistentvolumeclaim "web-v" not found"#),
        ),
    ] {
        let pod = json!({ "metadata": { "name": "web" }, "spec": { "volumes": [volume] } });
        assert_eq!(missing_claim(&pod).as_deref(), reason, "{pod}");
    }
}

#[test]
fn pods_go_to_nodes_that_are_ready_and_selected() {
    let node = |ready: &str| {
        json!({
            "metadata": { "labels": { "disk": "ssd" } },
            "spec": {},
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        })
    };
    let pod = |disk: &str| json!({ "spec": { "nodeSelector": { "disk": disk } } });
    assert!(can_run_on(&pod("ssd"), &node("True")));
    assert!(!can_run_on(&pod("ssd"), &node("Unknown")));
    assert!(!can_run_on(&pod("hdd"), &node("True")));
}
