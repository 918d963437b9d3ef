//! Pods that use more local storage than their limits allow.

use serde_json::{Value, json};

use crate::joined::{Joined, WAITS, bound, wait_stdout, with_volume};

/// Writes 32 MiB to a file, and waits.
fn writes(file: &str) -> String {
    format!("head -c 33554432 /dev/zero > {file}; {WAITS}")
}

/// Writes 32 MiB to its log, and waits.
const TALKS: &str = "yes 0123456789012345678901234567890 | head -c 33554432; sleep 1000";

/// A pod of the node with a limit of local storage for its container.
fn limited(name: &str, script: &str, limit: &str) -> Value {
    let mut pod = bound(name, script);
    let limits = json!({ "ephemeral-storage": limit });
    pod["spec"]["containers"][0]["resources"] = json!({ "limits": limits });
    pod
}

/// The same with a second container that has a limit of 64 MiB, and writes nothing.
fn with_second(mut pod: Value) -> Value {
    let mut second = pod["spec"]["containers"][0].clone();
    second["name"] = "second".into();
    second["command"] = json!(["sh", "-c", WAITS]);
    second["resources"] = json!({ "limits": { "ephemeral-storage": "64Mi" } });
    pod["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .push(second);
    pod
}

#[test]
fn pods_that_exceed_their_limits_of_local_storage_are_evicted_and_others_stay() {
    let joined = Joined::start("worker");
    let neighbours = [
        with_volume(bound("free", &writes("/data/file")), &json!({})),
        with_volume(
            limited("modest", &writes("/data/file"), "512Mi"),
            &json!({ "sizeLimit": "256Mi" }),
        ),
    ];
    let volume = with_volume(
        bound("volume", &writes("/data/file")),
        &json!({ "sizeLimit": "16Mi" }),
    );
    let layer = with_second(limited("layer", &writes("/file"), "16Mi"));
    let log = limited("log", TALKS, "16Mi");
    for pod in neighbours.iter().chain([&volume, &layer, &log]) {
        joined.create(pod);
    }
    let expected = [
        (
            "volume",
            "Usage of EmptyDir volume \"data\" exceeds the limit \"16Mi\". ",
        ),
        (
            "layer",
            "Container main exceeded its local ephemeral storage limit \"16Mi\". ",
        ),
        (
            "log",
            "Pod ephemeral local storage usage exceeds the total limit of containers 16Mi. ",
        ),
    ];
    for (name, message) in expected {
        let ended = joined.wait_pod(name, "is evicted", |pod| pod["status"]["phase"] == "Failed");
        let status = &ended["status"];
        assert_eq!(status["reason"], "Evicted", "{status}");
        assert_eq!(status["message"], message, "{status}");
        let conditions = status["conditions"].as_array().unwrap();
        let mut kinds = conditions.iter().map(|one| &one["type"]);
        assert!(!kinds.any(|kind| kind == "DisruptionTarget"), "{status}");
    }
    wait_stdout(&joined.kubectl, &["get", "events"], |text| {
        let told = |(_, message): &(&str, &str)| text.contains(message.trim());
        text.contains("Evicted") && expected.iter().all(told)
    });
    let metrics = joined.agent.health("/metrics").unwrap().body;
    let metrics = String::from_utf8_lossy(&metrics);
    for signal in [
        "emptydirfs.limit",
        "ephemeralcontainerfs.limit",
        "ephemeralpodfs.limit",
    ] {
        let line = format!("kubelet_evictions{{eviction_signal=\"{signal}\"}} 1");
        assert!(metrics.lines().any(|found| found == line), "{metrics}");
    }
    for name in ["free", "modest"] {
        let stays = joined.wait_ready(name);
        assert_eq!(stays["status"]["phase"], "Running");
        assert_eq!(stays["status"]["containerStatuses"][0]["restartCount"], 0);
    }
    for name in ["free", "modest", "volume", "layer", "log"] {
        let words = ["delete", "pod", name, "--timeout=60s"];
        joined.kubectl.stdout(&words);
    }
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}
