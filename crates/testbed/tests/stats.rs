//! Statistics of real pods, as a metrics server, a dashboard and an operator read them. On containerd
//! and on the embedded runtime, with the machine's cgroup version.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "outside/outside.rs"]
mod outside;

use std::net::Ipv4Addr;

use outside::{PodText, TIMEOUT, states};
use rubelet_testbed::agent::free_port;
use rubelet_testbed::manifest::{shell, with};
use rubelet_testbed::{Agent, CgroupDriver, TestRuntime, http};
use serde_json::{Value, json};

/// Writes 2 MiB to a volume on disk, and 1 MiB to one in memory.
const STORES: &str = "head -c 2097152 /dev/zero > /disk/file; head -c 1048576 /dev/zero > /memory/file; \
                      while true; do sleep 1000; done";

/// A pod with volumes.
fn stores() -> PodText {
    let mount = |name: &str| json!({ "name": name, "mountPath": format!("/{name}") });
    let container = json!({ "volumeMounts": [mount("disk"), mount("memory")] });
    PodText::new("stores")
        .spec(
            "containers",
            json!([with(shell("main", STORES), &container)]),
        )
        .spec(
            "volumes",
            json!([
                { "name": "disk", "emptyDir": {} },
                { "name": "memory", "emptyDir": { "medium": "Memory", "sizeLimit": "4Mi" } },
                { "name": "host", "hostPath": { "path": "/" } },
            ]),
        )
}

/// A node with a pod that computes, one that waits and one that stores.
struct MeasuredNode {
    agent: Agent,
    _runtime: TestRuntime,
    port: String,
    /// The beginning of the label with the block device of layers. A file system in memory has none.
    device: &'static str,
}

impl MeasuredNode {
    fn start() -> Self {
        let runtime = TestRuntime::start().unwrap();
        let port = free_port(Ipv4Addr::LOCALHOST.into()).unwrap();
        let pods = [
            PodText::new("busy").script("echo begins; while true; do :; done"),
            PodText::new("idle").container("second"),
            stores(),
        ];
        let mut builder = Agent::builder(&runtime)
            .config("readOnlyPort", port)
            .config("volumeStatsAggPeriod", "100ms")
            .flag("--housekeeping-interval=0s");
        let number = rustix::fs::stat(builder.scratch().dir()).unwrap().st_dev;
        let device = match rustix::fs::major(number) {
            0 => "device=\"\"",
            _ => "device=\"/dev/",
        };
        // Any cgroup will do.
        let cgroup = format!("{}/kubepods", builder.scratch().tag());
        let cgroup = CgroupDriver::wanted().unwrap().configured(&cgroup);
        builder = builder.flag(format!("--runtime-cgroups={cgroup}"));
        for pod in &pods {
            builder = builder.manifest(pod.file(), pod.yaml());
        }
        let agent = builder.start().unwrap();
        states::wait_all_ready(&agent, pods.len());
        Self {
            agent,
            _runtime: runtime,
            port: format!("127.0.0.1:{port}"),
            device,
        }
    }

    fn get(&self, path: &str) -> String {
        let answer = http::get_tcp(&self.port, path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.text()
    }

    fn summary(&self) -> Value {
        serde_json::from_str(&self.get("/stats/summary")).unwrap()
    }
}

/// The value of the line that begins so; times may follow it.
fn metric(text: &str, line: &str) -> Option<f64> {
    let value = text.lines().find_map(|found| found.strip_prefix(line))?;
    value.split_whitespace().next()?.parse().ok()
}

#[track_caller]
fn at_least(text: &str, line: &str, least: f64) {
    let found = metric(text, line);
    assert!(found >= Some(least), "{line}: {found:?}\n{text}");
}

fn pod_of<'a>(summary: &'a Value, name: &str) -> Option<&'a Value> {
    let mut pods = summary["pods"].as_array()?.iter();
    pods.find(|pod| pod["podRef"]["name"] == name)
}

#[test]
fn a_metrics_server_and_dashboards_find_the_usage_of_pods() {
    let node = MeasuredNode::start();
    let of = r#"{container="main",namespace="default",pod="busy-testnode"}"#;
    let used = format!("container_cpu_usage_seconds_total{of}");
    let first = metric(&node.get("/metrics/resource"), &used).unwrap();
    let grown = node.agent.wait_for("the pod uses CPU time", TIMEOUT, |_| {
        let text = node.get("/metrics/resource");
        Ok((metric(&text, &used) > Some(first)).then_some(text))
    });
    let text = grown.unwrap();
    at_least(&text, "node_cpu_usage_seconds_total", 0.1);
    at_least(&text, "node_memory_working_set_bytes", 1e6);
    let idle = r#"{namespace="default",pod="idle-testnode"}"#;
    at_least(&text, &format!("pod_memory_working_set_bytes{idle}"), 1.0);
    at_least(&text, &format!("container_start_time_seconds{of}"), 1e9);
    let second = r#"{container="second",namespace="default",pod="idle-testnode"}"#;
    let memory = format!("container_memory_working_set_bytes{second}");
    at_least(&text, &memory, 1.0);
    assert_eq!(metric(&text, "resource_scrape_error"), Some(0.0), "{text}");

    let text = node.get("/metrics/cadvisor");
    assert_eq!(metric(&text, "container_scrape_error"), Some(0.0), "{text}");
    let has = |parts: &[&str]| {
        let mut lines = text.lines();
        let found = lines.any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "{parts:?}\n{text}");
    };
    let busy = r#"namespace="default",pod="busy-testnode""#;
    has(&[
        "container_cpu_usage_seconds_total{container=\"main\"",
        busy,
        "cpu=\"total\"",
    ]);
    has(&["container_memory_usage_bytes{container=\"main\"", busy]);
    has(&["container_spec_cpu_shares{container=\"main\"", busy, " 2"]);
    has(&[
        "container_fs_usage_bytes{container=\"main\"",
        busy,
        node.device,
    ]);
    for name in [
        "receive_bytes",
        "receive_packets",
        "transmit_packets_dropped",
    ] {
        let name = format!("container_network_{name}_total{{container=\"\"");
        has(&[&name, busy, "interface=\"eth0\""]);
    }
    has(&["id=\"/\"", "container_cpu_usage_seconds_total"]);
    at_least(&text, "machine_cpu_cores", 1.0);
}

#[test]
fn the_summary_has_usage_per_second_disks_logs_and_networks() {
    let node = MeasuredNode::start();
    // The first reading has nothing to compare with.
    let found = node.agent.wait_for("usage per second", TIMEOUT, |_| {
        let summary = node.summary();
        let cores = pod_of(&summary, "busy-testnode")
            .and_then(|pod| pod["containers"][0]["cpu"]["usageNanoCores"].as_u64());
        // Other counters are read a little later than those of pods: their first rate may be due later.
        let has_rate = |of: &Value| of["cpu"]["usageNanoCores"].is_u64();
        let services = summary["node"]["systemContainers"].as_array();
        let all = has_rate(&summary["node"]) && services.into_iter().flatten().all(has_rate);
        Ok((all && cores > Some(1_000_000)).then_some(summary))
    });
    let summary = found.unwrap();
    let shown = serde_json::to_string_pretty(&summary).unwrap();
    let number = |pointer: &str, value: &Value| {
        let found = value.pointer(pointer).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("{pointer} is missing\n{shown}"))
    };
    for pointer in [
        "/node/cpu/usageNanoCores",
        "/node/memory/workingSetBytes",
        "/node/fs/capacityBytes",
        "/node/runtime/imageFs/capacityBytes",
        "/node/rlimit/maxpid",
    ] {
        assert!(number(pointer, &summary) > 0, "{pointer}");
    }
    for name in ["runtime", "pods"] {
        let services = summary["node"]["systemContainers"].as_array().unwrap();
        let service = services.iter().find(|service| service["name"] == name);
        let service = service.unwrap_or_else(|| panic!("{name} is missing\n{shown}"));
        assert!(
            number("/cpu/usageNanoCores", service) > 1_000_000,
            "{name}\n{shown}"
        );
    }
    let pod = pod_of(&summary, "busy-testnode").unwrap();
    for pointer in [
        "/memory/workingSetBytes",
        "/process_stats/process_count",
        "/containers/0/rootfs/capacityBytes",
        "/containers/0/logs/usedBytes",
    ] {
        assert!(number(pointer, pod) > 0, "{pointer}");
    }
    assert_eq!(pod["network"]["name"], "eth0", "{shown}");
    let short = node.get("/stats/summary?only_cpu_and_memory=true");
    let short: Value = serde_json::from_str(&short).unwrap();
    assert!(pod_of(&short, "idle-testnode").is_some());

    let top = node.agent.cli(&["top", "--containers"]).unwrap();
    assert_eq!(top.code, 0, "{}", top.stderr);
    for part in ["testnode", "busy-testnode", "second", "MEMORY(bytes)"] {
        assert!(top.stdout.contains(part), "{part}: {}", top.stdout);
    }
}

#[test]
fn the_summary_has_the_space_that_volumes_use() {
    let node = MeasuredNode::start();
    let written = node.agent.wait_for("files in the volumes", TIMEOUT, |_| {
        let summary = node.summary();
        let pod = pod_of(&summary, "stores-testnode").cloned();
        Ok(pod.filter(|pod| {
            let volumes = pod["volume"].as_array();
            let used = |name: &str| {
                let mut volumes = volumes.into_iter().flatten();
                let volume = volumes.find(|one| one["name"] == name)?;
                volume["usedBytes"].as_u64()
            };
            used("disk") >= Some(2 << 20) && used("memory") >= Some(1 << 20)
        }))
    });
    let pod = written.unwrap();
    let shown = serde_json::to_string_pretty(&pod).unwrap();
    let volume = |name: &str| {
        let mut volumes = pod["volume"].as_array().unwrap().iter();
        volumes.find(|one| one["name"] == name).unwrap()
    };
    assert_eq!(pod["volume"].as_array().unwrap().len(), 2, "{shown}");
    assert_eq!(volume("memory")["capacityBytes"], 4 << 20, "{shown}");
    assert_eq!(volume("memory")["availableBytes"], 3 << 20, "{shown}");
    for number in ["capacityBytes", "availableBytes", "inodesUsed"] {
        assert!(
            volume("disk")[number].as_u64() > Some(0),
            "{number}: {shown}"
        );
    }
    let storage = pod["ephemeral-storage"]["usedBytes"].as_u64().unwrap();
    assert!(storage >= 2 << 20, "{shown}");
    assert!(storage < 3 << 20, "memory is not storage: {shown}");
    assert!(pod.to_string().contains("rootfs"), "{shown}");
}
