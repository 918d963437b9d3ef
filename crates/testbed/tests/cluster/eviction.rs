//! A node that runs out of memory.

use rubelet_testbed::memory::available_bytes;
use serde_json::{Value, json};

use crate::joined::{Joined, WAITS, condition, pod, wait_stdout};

const MIB: u64 = 1 << 20;
/// Memory that the machine must have, and that other tests leave it.
const NEEDED: u64 = 6144 * MIB;
/// What the greedy pod can take before the threshold is crossed. Other tests use less meanwhile.
const ROOM: u64 = 1536 * MIB;
/// Fills memory with files of 64 MiB, at most 48 of them: 3 GiB.
const GREEDY: &str = "i=0; while [ $i -lt 48 ]; do dd if=/dev/zero of=/memory/$i bs=1M count=64; \
                      i=$((i+1)); sleep 0.1; done; sleep 1000";

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

#[test]
fn the_pod_that_takes_all_memory_is_evicted_and_only_that_one() {
    let available = available_bytes().unwrap();
    if !rubelet_needs::have(available > NEEDED, "6 GiB of free memory") {
        return;
    }
    let threshold = (available - ROOM) / MIB;
    let joined = Joined::start_with("worker", |builder| {
        builder
            .config(
                "evictionHard",
                json!({ "memory.available": format!("{threshold}Mi") }),
            )
            .config("evictionPressureTransitionPeriod", "10s")
    });
    joined.create(&bound("modest", WAITS, Some("64Mi")));
    joined.wait_ready("modest");
    let mut greedy = bound("greedy", GREEDY, None);
    greedy["spec"]["volumes"] = json!([{ "name": "memory", "emptyDir": { "medium": "Memory" } }]);
    greedy["spec"]["containers"][0]["volumeMounts"] =
        json!([{ "name": "memory", "mountPath": "/memory" }]);
    joined.create(&greedy);

    let ended = joined.wait_pod("greedy", "is evicted", |pod| {
        pod["status"]["phase"] == "Failed"
    });
    let status = &ended["status"];
    assert_eq!(status["reason"], "Evicted", "{status}");
    let message = status["message"].as_str().unwrap();
    let expected =
        format!("The node was low on resource: memory. Threshold quantity: {threshold}Mi,");
    assert!(message.starts_with(&expected), "{message}");
    let conditions = status["conditions"].as_array().unwrap();
    let disrupted = conditions
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .unwrap();
    assert_eq!(disrupted["reason"], "TerminationByKubelet", "{disrupted}");
    assert_eq!(disrupted["message"], message, "{disrupted}");
    let events = wait_stdout(&joined.kubectl, &["get", "events"], |text| {
        text.contains("Evicted") && text.contains("EvictionThresholdMet")
    });
    assert!(events.contains("Attempting to reclaim memory"), "{events}");
    let starved =
        "jsonpath={.items[?(@.reason==\"Evicted\")].metadata.annotations.starved_resource}";
    let starved = joined.kubectl.stdout(&["get", "events", "-o", starved]);
    assert_eq!(starved, "memory");

    // What it took is free again, and the condition ends after the transition period.
    joined.wait_object(("nodes", "", "worker"), "is relieved", |node| {
        condition(node, "MemoryPressure") == "False"
    });
    let modest = joined.wait_ready("modest");
    assert_eq!(modest["status"]["phase"], "Running");
    assert_eq!(modest["status"]["containerStatuses"][0]["restartCount"], 0);
    let metrics = joined.agent.health("/metrics").unwrap().body;
    let metrics = String::from_utf8_lossy(&metrics);
    let line = "kubelet_evictions{eviction_signal=\"memory.available\"} 1";
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    for name in ["modest", "greedy"] {
        let words = ["delete", "pod", name, "--timeout=60s"];
        joined.kubectl.stdout(&words);
    }
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}
