//! A node on which a resource runs out: the pod that takes it is evicted, and only that one.

use std::fs::File;

use rubelet_testbed::disk::SmallDisk;
use rubelet_testbed::memory::available_bytes;
use rubelet_testbed::pressure::{DISK_INODES, DISK_KIB, MEMORY_NEEDED, Pressure};
use rubelet_testbed::scratch::lock;
use serde_json::{Value, json};

use crate::joined::{Joined, WAITS, bound, condition, wait_stdout, with_volume};

/// A node with little left of one resource, and a modest pod on it.
struct Short {
    joined: Joined,
    pressure: Pressure,
    threshold: String,
    /// Unmounted at the end.
    _disk: SmallDisk,
    /// The whole machine runs out of it.
    _lock: Option<File>,
}

impl Short {
    fn start(pressure: Pressure) -> Self {
        let of_machine = matches!(pressure, Pressure::Memory | Pressure::Processes);
        let lock = of_machine.then(|| lock::shortage().unwrap());
        let threshold = pressure.threshold().unwrap();
        let mut disk = None;
        let joined = Joined::start_prepared(
            "worker",
            |builder| {
                builder
                    .config("evictionHard", json!({ pressure.signal(): threshold }))
                    .config("evictionPressureTransitionPeriod", "5s")
            },
            |agent| {
                let root = agent.root_dir();
                std::fs::create_dir_all(&root).unwrap();
                disk = Some(SmallDisk::mount_with_inodes(&root, DISK_KIB, DISK_INODES).unwrap());
            },
        );
        let mut modest = bound("modest", WAITS);
        let requests = json!({ "memory": "64Mi" });
        modest["spec"]["containers"][0]["resources"] = json!({ "requests": requests });
        joined.create(&with_volume(modest, &json!({})));
        joined.wait_ready("modest");
        Self {
            joined,
            pressure,
            threshold,
            _disk: disk.unwrap(),
            _lock: lock,
        }
    }

    /// Starts a pod that takes all, and waits until it is evicted; returns it.
    fn evicted(&self) -> Value {
        let mut greedy = self.pressure.greedy("greedy");
        greedy["spec"]["nodeName"] = "worker".into();
        self.joined.create(&greedy);
        let ended = self.joined.wait_pod("greedy", "is evicted", |pod| {
            pod["status"]["phase"] == "Failed"
        });
        let status = &ended["status"];
        assert_eq!(status["reason"], "Evicted", "{status}");
        let message = status["message"].as_str().unwrap();
        let begin = format!(
            "The node was low on resource: {}. Threshold quantity: ",
            self.pressure.resource()
        );
        assert!(message.starts_with(&begin), "{message}");
        ended
    }

    /// Waits until the node is relieved. The modest pod still runs; then both are removed.
    fn relieved(&self) {
        let joined = &self.joined;
        joined.wait_object(("nodes", "", "worker"), "is relieved", |node| {
            condition(node, self.pressure.condition()) == "False"
        });
        let modest = joined.wait_ready("modest");
        assert_eq!(modest["status"]["phase"], "Running");
        assert_eq!(modest["status"]["containerStatuses"][0]["restartCount"], 0);
        let metrics = joined.agent.health("/metrics").unwrap().body;
        let metrics = String::from_utf8_lossy(&metrics);
        let signal = self.pressure.signal();
        let line = format!("kubelet_evictions{{eviction_signal=\"{signal}\"}} 1");
        assert!(metrics.lines().any(|found| found == line), "{metrics}");
        for name in ["modest", "greedy"] {
            let words = ["delete", "pod", name, "--timeout=60s"];
            joined.kubectl.stdout(&words);
        }
        joined.wait_empty();
        joined.cluster.no_violations().unwrap();
    }
}

#[test]
fn the_pod_that_fills_the_disk_is_evicted_and_only_that_one() {
    let node = Short::start(Pressure::Disk);
    let message = node.evicted()["status"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(message.contains("quantity: 64Mi, available: "), "{message}");
    node.relieved();
}

#[test]
fn the_pod_that_takes_all_inodes_is_evicted_and_only_that_one() {
    let node = Short::start(Pressure::Inodes);
    let message = node.evicted()["status"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(message.contains("quantity: 1k, available: "), "{message}");
    node.relieved();
}

#[test]
fn the_pod_that_takes_all_processes_is_evicted_and_only_that_one() {
    let node = Short::start(Pressure::Processes);
    node.evicted();
    node.relieved();
}

#[test]
fn the_pod_that_takes_all_memory_is_evicted_and_only_that_one() {
    let is_free = available_bytes().unwrap() > MEMORY_NEEDED;
    if !rubelet_needs::have(is_free, "6 GiB of free memory") {
        return;
    }
    let node = Short::start(Pressure::Memory);
    let ended = node.evicted();
    let status = &ended["status"];
    let message = status["message"].as_str().unwrap();
    let expected = format!("quantity: {}, available: ", node.threshold);
    assert!(message.contains(&expected), "{message}");
    let conditions = status["conditions"].as_array().unwrap();
    let disrupted = conditions
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .unwrap();
    assert_eq!(disrupted["reason"], "TerminationByKubelet", "{disrupted}");
    assert_eq!(disrupted["message"], message, "{disrupted}");
    let kubectl = &node.joined.kubectl;
    let events = wait_stdout(kubectl, &["get", "events"], |text| {
        text.contains("Evicted") && text.contains("EvictionThresholdMet")
    });
    assert!(events.contains("Attempting to reclaim memory"), "{events}");
    let starved =
        "jsonpath={.items[?(@.reason==\"Evicted\")].metadata.annotations.starved_resource}";
    let starved = kubectl.stdout(&["get", "events", "-o", starved]);
    assert_eq!(starved, "memory");

    // What it took is free again, and the condition ends after the transition period.
    node.relieved();
}
