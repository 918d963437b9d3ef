//! Deployments, DaemonSets and StatefulSets.

use serde_json::json;

use super::{TIMEOUT, all_ready, applies, apply, pods, wait_pods, workload};
use crate::joined::{Joined, restarts};

#[test]
fn a_deployment_scales_to_fifty_pods_and_to_zero() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    apply(
        &joined,
        &workload("Deployment", "web", &json!({ "replicas": 0 })),
    );
    let scale = |count: &str| {
        let replicas = format!("--replicas={count}");
        joined
            .kubectl
            .stdout(&["scale", "deployment/web", &replicas]);
    };
    scale("50");
    let timeout = format!("--timeout={}s", TIMEOUT.as_secs());
    joined
        .kubectl
        .stdout(&["rollout", "status", "deployment/web", &timeout]);
    let seen = pods(&joined, "web");
    assert!(all_ready(&seen, 50), "{seen:?}");
    assert_eq!(seen.iter().map(restarts).sum::<u64>(), 0);
    let mut addresses: Vec<_> = seen
        .iter()
        .map(|pod| pod["status"]["podIP"].as_str())
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 50, "{addresses:?}");

    // A new version replaces pods a few at a time.
    joined
        .kubectl
        .stdout(&["set", "env", "deployment/web", "VERSION=2"]);
    joined
        .kubectl
        .stdout(&["rollout", "status", "deployment/web", &timeout]);
    scale("0");
    wait_pods(&joined, "web", "all pods are gone", |pods| pods.is_empty());
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}

#[test]
fn a_host_network_daemon_set_runs_on_a_tainted_node() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    joined
        .kubectl
        .stdout(&["taint", "nodes", "worker", "dedicated=yes:NoSchedule"]);
    let mut set = workload("DaemonSet", "agent", &json!({}));
    let spec = &mut set["spec"]["template"]["spec"];
    spec["hostNetwork"] = true.into();
    spec["tolerations"] = json!([{ "operator": "Exists" }]);
    apply(&joined, &set);
    apply(
        &joined,
        &workload("Deployment", "web", &json!({ "replicas": 1 })),
    );
    let seen = wait_pods(&joined, "agent", "the daemon runs", |pods| {
        all_ready(pods, 1)
    });
    assert_eq!(seen[0]["status"]["podIP"], seen[0]["status"]["hostIP"]);
    let web = pods(&joined, "web");
    assert!(
        web.iter().all(|pod| pod["spec"]["nodeName"].is_null()),
        "{web:?}"
    );

    let first = seen[0]["metadata"]["uid"].clone();
    joined
        .kubectl
        .stdout(&["set", "env", "daemonset/agent", "VERSION=2"]);
    wait_pods(&joined, "agent", "a new one has taken its place", |pods| {
        all_ready(pods, 1) && pods[0]["metadata"]["uid"] != first
    });
    joined
        .kubectl
        .stdout(&["taint", "nodes", "worker", "dedicated-"]);
    wait_pods(&joined, "web", "what had no place runs", |pods| {
        all_ready(pods, 1)
    });
    joined.kubectl.stdout(&[
        "delete",
        "daemonset/agent",
        "deployment/web",
        "--wait=false",
    ]);
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}

#[test]
fn pods_of_a_stateful_set_start_in_order_and_keep_names() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    let more = json!({ "replicas": 2, "serviceName": "data" });
    apply(&joined, &workload("StatefulSet", "data", &more));
    let seen = wait_pods(&joined, "data", "both run", |pods| all_ready(pods, 2));
    let time = |name: &str| {
        let pod = seen.iter().find(|pod| pod["metadata"]["name"] == name);
        let time = pod.and_then(|pod| pod["metadata"]["creationTimestamp"].as_str());
        time.unwrap_or_else(|| panic!("no {name} in {seen:?}"))
            .to_owned()
    };
    assert!(time("data-0") <= time("data-1"));

    let first = seen[0]["metadata"]["uid"].clone();
    joined
        .kubectl
        .stdout(&["delete", "pod", "data-0", "--timeout=60s"]);
    let again = wait_pods(&joined, "data", "it is there again", |pods| {
        all_ready(pods, 2)
    });
    assert_eq!(again[0]["metadata"]["name"], "data-0");
    assert_ne!(again[0]["metadata"]["uid"], first);
    joined
        .kubectl
        .stdout(&["scale", "statefulset/data", "--replicas=0"]);
    wait_pods(&joined, "data", "both are gone", |pods| pods.is_empty());
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}
