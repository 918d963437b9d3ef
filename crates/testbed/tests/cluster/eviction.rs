//! A node on which a resource runs out: the pod that takes it is evicted, and only that one.

mod disk;
mod memory;
mod processes;

use serde_json::{Value, json};

use crate::joined::{Joined, WAITS, condition, pod};

/// A pod that is bound to the node, and requests this much memory.
fn bound(name: &str, script: &str, memory: Option<&str>) -> Value {
    let mut pod = pod(name, script);
    pod["spec"]["nodeName"] = "worker".into();
    if let Some(memory) = memory {
        let requests = json!({ "memory": memory });
        pod["spec"]["containers"][0]["resources"] = json!({ "requests": requests });
    }
    pod
}

/// The same with an `emptyDir` on `/data`.
fn with_volume(mut pod: Value, empty_dir: &Value) -> Value {
    pod["spec"]["volumes"] = json!([{ "name": "data", "emptyDir": empty_dir }]);
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{ "name": "data", "mountPath": "/data" }]);
    pod
}

/// Starts a pod that uses little.
fn start_modest(joined: &Joined) {
    let modest = bound("modest", WAITS, Some("64Mi"));
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
