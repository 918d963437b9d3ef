//! A node that is drained, tainted, unreachable, or deleted and registered again.

use serde_json::{Value, json};

use super::{all_ready, applies, apply, reason, wait_long, wait_pods, workload};
use crate::joined::{Joined, condition, restarts};

fn one_web(joined: &Joined) -> Value {
    apply(
        joined,
        &workload("Deployment", "web", &json!({ "replicas": 1 })),
    );
    wait_pods(joined, "web", "it runs", |pods| all_ready(pods, 1)).remove(0)
}

fn has_taint(node: &Value, key: &str) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints
        .into_iter()
        .flatten()
        .any(|taint| taint["key"] == key)
}

#[test]
fn a_drain_evicts_pods_unless_a_budget_forbids_it() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    let first = one_web(&joined);
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": "web" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    apply(&joined, &budget);
    wait_long(&joined, "pdb/web", |budget| {
        budget["status"]["currentHealthy"] == 1
    });
    let drain = ["drain", "worker", "--ignore-daemonsets", "--timeout=8s"];
    let refused = joined.kubectl.run(&drain);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("disruption budget"),
        "{}",
        refused.stderr
    );
    let still = wait_pods(&joined, "web", "it still runs", |pods| all_ready(pods, 1));
    assert_eq!(still[0]["metadata"]["uid"], first["metadata"]["uid"]);

    joined.kubectl.stdout(&["delete", "pdb", "web"]);
    joined
        .kubectl
        .stdout(&["drain", "worker", "--ignore-daemonsets", "--timeout=60s"]);
    joined.wait_empty();
    joined.kubectl.stdout(&["uncordon", "worker"]);
    wait_pods(&joined, "web", "its successor runs", |pods| {
        all_ready(pods, 1)
    });
    joined.cluster.no_violations().unwrap();
}

#[test]
fn a_taint_evicts_pods_that_do_not_tolerate_it() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    let first = one_web(&joined);
    let mut tough = workload("Deployment", "tough", &json!({ "replicas": 1 }));
    tough["spec"]["template"]["spec"]["tolerations"] =
        json!([{ "key": "fire", "operator": "Exists", "effect": "NoExecute" }]);
    apply(&joined, &tough);
    let stays = wait_pods(&joined, "tough", "it runs", |pods| all_ready(pods, 1));
    joined
        .kubectl
        .stdout(&["taint", "nodes", "worker", "fire=yes:NoExecute"]);
    wait_pods(&joined, "web", "its successor waits", |pods| {
        let is_first = |pod: &Value| pod["metadata"]["uid"] == first["metadata"]["uid"];
        !pods.iter().any(is_first) && pods.iter().all(|pod| pod["spec"]["nodeName"].is_null())
    });
    let after = wait_pods(&joined, "tough", "it runs", |pods| all_ready(pods, 1));
    assert_eq!(after[0]["metadata"]["uid"], stays[0]["metadata"]["uid"]);
    assert_eq!(restarts(&after[0]), 0);
    joined
        .kubectl
        .stdout(&["taint", "nodes", "worker", "fire-"]);
    wait_pods(&joined, "web", "it runs again", |pods| all_ready(pods, 1));
    joined.cluster.no_violations().unwrap();
}

#[test]
fn an_unreachable_node_comes_back_with_its_pods() {
    if !applies() {
        return;
    }
    let mut joined = Joined::start("worker");
    let first = one_web(&joined);
    joined.agent.terminate().unwrap();
    let node = wait_long(&joined, "node/worker", |node| {
        condition(node, "Ready") == "Unknown" && has_taint(node, "node.kubernetes.io/unreachable")
    });
    assert_eq!(reason(&node, "Ready"), "NodeStatusUnknown");
    wait_pods(&joined, "web", "it counts as not ready", |pods| {
        pods.len() == 1 && condition(&pods[0], "Ready") == "False"
    });
    joined.agent.start().unwrap();
    wait_long(&joined, "node/worker", |node| {
        condition(node, "Ready") == "True" && !has_taint(node, "node.kubernetes.io/unreachable")
    });
    let after = wait_pods(&joined, "web", "it is ready again", |pods| {
        all_ready(pods, 1)
    });
    assert_eq!(after[0]["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(restarts(&after[0]), 0);
    joined.cluster.no_violations().unwrap();
}

#[test]
fn pods_of_a_deleted_node_are_replaced_on_a_new_one() {
    if !applies() {
        return;
    }
    let mut joined = Joined::start("worker");
    let first = one_web(&joined);
    joined.kubectl.stdout(&["delete", "node", "worker"]);
    // Pod garbage collection waits for a while before it deletes pods.
    wait_pods(&joined, "web", "its successor waits", |pods| {
        let is_first = |pod: &Value| pod["metadata"]["uid"] == first["metadata"]["uid"];
        !pods.iter().any(is_first)
    });
    joined.wait_empty();
    joined.agent.terminate().unwrap();
    joined.agent.start().unwrap();
    joined.wait_node_ready("worker");
    wait_pods(&joined, "web", "its successor runs", |pods| {
        all_ready(pods, 1)
    });
    joined.cluster.no_violations().unwrap();
}
