//! A node on which a resource runs out: the pod that takes it is evicted, and only that one.

mod disk;
mod memory;
mod processes;

use serde_json::{Value, json};

use crate::joined::{Joined, WAITS, bound, condition, with_volume};

/// Starts a pod that uses little.
fn start_modest(joined: &Joined) {
    let mut modest = bound("modest", WAITS);
    let requests = json!({ "memory": "64Mi" });
    modest["spec"]["containers"][0]["resources"] = json!({ "requests": requests });
    joined.create(&with_volume(modest, &json!({})));
    joined.wait_ready("modest");
}

/// Waits until the pod `greedy` is evicted; returns it.
fn evicted(joined: &Joined) -> Value {
    let ended = joined.wait_pod("greedy", "is evicted", |pod| {
        pod["status"]["phase"] == "Failed"
    });
    let status = &ended["status"];
    assert_eq!(status["reason"], "Evicted", "{status}");
    ended
}

/// Waits until the node is relieved. The modest pod still runs; then both are removed.
fn relieved(joined: &Joined, pressure: &str, signal: &str) {
    joined.wait_object(("nodes", "", "worker"), "is relieved", |node| {
        condition(node, pressure) == "False"
    });
    let modest = joined.wait_ready("modest");
    assert_eq!(modest["status"]["phase"], "Running");
    assert_eq!(modest["status"]["containerStatuses"][0]["restartCount"], 0);
    let metrics = joined.agent.health("/metrics").unwrap().body;
    let metrics = String::from_utf8_lossy(&metrics);
    let line = format!("kubelet_evictions{{eviction_signal=\"{signal}\"}} 1");
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    for name in ["modest", "greedy"] {
        let words = ["delete", "pod", name, "--timeout=60s"];
        joined.kubectl.stdout(&words);
    }
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}
