//! Tests of `lifecycle`.

use super::*;

fn node(ready: &str) -> Value {
    json!({
        "metadata": { "name": "n", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "taints": [
            { "key": "own", "effect": "NoSchedule" },
            { "key": NOT_READY, "effect": "NoSchedule" },
        ] },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

fn after(seconds: i64, node: Value) -> Value {
    let mut store = Store::new(10);
    store.put("nodes", node);
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    reconcile(
        &mut store,
        &mut Leases::new(),
        start + SignedDuration::from_secs(seconds),
    );
    Value::clone(store.get("nodes", "", "n").unwrap())
}

fn keys(node: &Value) -> Vec<&str> {
    let taints = meta::entries(node, "/spec/taints").iter();
    taints.map(|taint| meta::text(taint, "/key")).collect()
}

#[test]
fn taints_follow_the_conditions_and_the_lease() {
    assert_eq!(keys(&after(1, node("True"))), ["own"]);
    assert_eq!(
        keys(&after(1, node("False"))),
        ["own", NOT_READY, NOT_READY]
    );
    let lost = after(60, node("True"));
    assert_eq!(keys(&lost), ["own", UNREACHABLE, UNREACHABLE]);
    assert_eq!(
        lost["status"]["conditions"][0]["reason"],
        "NodeStatusUnknown"
    );
}

#[test]
fn a_node_with_a_wrong_clock_is_lost_without_renewals() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let at = |seconds| start + SignedDuration::from_secs(seconds);
    for skew in [-600, 0, 600] {
        let (mut store, mut leases) = (Store::new(10), Leases::new());
        store.put("nodes", node("True"));
        let mut renewed_at = |seconds: i64, now| {
            store.put(
                "leases",
                json!({
                    "metadata": { "namespace": "kube-node-lease", "name": "n" },
                    "spec": { "renewTime": clock::micros(at(seconds + skew)) },
                }),
            );
            reconcile(&mut store, &mut leases, at(now));
            let node = store.get("nodes", "", "n").unwrap();
            node["status"]["conditions"][0]["status"].clone()
        };
        assert_eq!(renewed_at(1000, 1000), "True");
        assert_eq!(renewed_at(1000, 1045), "True");
        assert_eq!(renewed_at(1045, 1090), "True");
        assert_eq!(renewed_at(1045, 1145), "Unknown");
    }
}
