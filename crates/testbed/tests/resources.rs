//! Requests and limits: their values in cgroups, and the effects of limits.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;
use rubelet_testbed::cgroup_limits::{CpuQuota, CpuShare};
use rubelet_testbed::cleanup::cgroups;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{container, has_ended, is_ready, restarts};
use rubelet_testbed::{CgroupLimits, Node, memory};
use serde_json::{Value, json};

/// Maximum number of processes of a pod.
const PIDS: u64 = 40;
/// The period of quotas in microseconds.
const PERIOD: u64 = 100_000;
const MI: u64 = 1 << 20;

fn node() -> Result<Arc<Node>> {
    Node::shared_with(|builder| builder.config("podPidsLimit", PIDS))
}

fn bounded(name: &str, requests: &Value, limits: &Value) -> Value {
    let resources = json!({ "resources": { "requests": requests, "limits": limits } });
    with(waiting(name), &resources)
}

/// The limits of the cgroup with this path below the instance's own.
fn limits(node: &Node, path: &str) -> Result<CgroupLimits> {
    CgroupLimits::of(node.scratch().tag(), path)
}

fn share(node: &Node, path: &str) -> Result<CpuShare> {
    Ok(limits(node, path)?.share)
}

/// CPU shares, CPU quota in each period, and memory limit in MiB.
type Expected = (u64, Option<u64>, Option<u64>);

#[track_caller]
fn assert_pod(node: &Node, path: &str, expected: Expected) -> Result<()> {
    let found = limits(node, path)?;
    assert!(found.share.is_of_pod(expected.0), "{path}: {}", found.share);
    assert_limits(path, found, expected);
    Ok(())
}

#[track_caller]
fn assert_container(node: &Node, path: &str, expected: Expected) -> Result<()> {
    let found = limits(node, path)?;
    let share = found.share;
    assert!(share.is_of_container(expected.0), "{path}: {share}");
    assert_limits(path, found, expected);
    Ok(())
}

#[track_caller]
fn assert_limits(path: &str, found: CgroupLimits, (_, quota, memory): Expected) {
    let period = PERIOD;
    let quota = quota.map(|quota| CpuQuota { quota, period });
    assert_eq!(found.quota, quota, "{path}: the quota");
    let bytes = memory.map(|size| size * MI);
    assert_eq!(found.memory, bytes, "{path}: the memory");
}

/// Whether the instance has a cgroup with this path.
fn exists(node: &Node, path: &str) -> Result<bool> {
    Ok(!cgroups::at(node.scratch().tag(), path)?.is_empty())
}

/// Path of the pod's cgroup, from its UID and its QoS class.
fn cgroup_of(pod: &Value, tier: &str) -> String {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    format!("kubepods/{tier}pod{uid}")
}

/// Path of a container's cgroup in the pod's.
fn cgroup_in(node: &Node, path: &str, (pod, container): (&str, &str)) -> Result<String> {
    let id = node.running(pod, container)?.id;
    Ok(format!(
        "{path}/{}",
        node.runtime().kind().cgroup_name(&id)?
    ))
}

fn oom_score_adj(node: &Node, pod: &str, container: &str) -> Result<i32> {
    let pid = node.truth().pid(&node.running(pod, container)?.id)?;
    let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))?;
    Ok(text.trim().parse()?)
}

#[test]
fn a_guaranteed_pod_has_its_requests_as_limits() -> Result<()> {
    let node = node()?;
    let both = json!({ "cpu": "500m", "memory": "32Mi" });
    // Requests that are not given default to the limits.
    let spec = json!({ "containers": [bounded("main", &json!({}), &both)] });
    node.apply(&pod("guaranteed", &spec))?;
    let seen = node.wait_ready("guaranteed")?;
    assert_eq!(seen["status"]["qosClass"], "Guaranteed");
    let path = cgroup_of(&seen, "");
    let inner = cgroup_in(&node, &path, ("guaranteed", "main"))?;
    assert_pod(&node, &path, (512, Some(50_000), Some(32)))?;
    assert_container(&node, &inner, (512, Some(50_000), Some(32)))?;
    assert_eq!(limits(&node, &path)?.pids, Some(PIDS));

    let score = oom_score_adj(&node, "guaranteed", "main")?;
    let runtime = node.runtime_pid()?;
    let own: i32 = std::fs::read_to_string(format!("/proc/{runtime}/oom_score_adj"))?
        .trim()
        .parse()?;
    assert!(
        score == -997 || score == own,
        "{score} is neither what was asked for nor the least that the host allows ({own})"
    );
    Ok(())
}

#[test]
fn a_burstable_pod_has_shares_and_given_limits() -> Result<()> {
    let node = node()?;
    let bounded_one = bounded(
        "bounded",
        &json!({ "cpu": "100m", "memory": "16Mi" }),
        &json!({ "memory": "32Mi" }),
    );
    let open = bounded("open", &json!({ "cpu": "200m" }), &json!({}));
    node.apply(&pod(
        "burstable",
        &json!({ "containers": [bounded_one, open] }),
    ))?;
    let seen = node.wait_ready("burstable")?;
    assert_eq!(seen["status"]["qosClass"], "Burstable");
    let path = cgroup_of(&seen, "burstable/");
    // One container has no limit, so the pod has none.
    assert_pod(&node, &path, (307, None, None))?;
    for (name, expected) in [
        ("bounded", (102, None, Some(32))),
        ("open", (204, None, None)),
    ] {
        let inner = cgroup_in(&node, &path, ("burstable", name))?;
        assert_container(&node, &inner, expected)?;
    }

    let cpus = std::thread::available_parallelism()?.get() as u64;
    let all = share(&node, "kubepods")?;
    assert!(all.is_of_pod(cpus * 1024), "{all}");
    let tier = share(&node, "kubepods/burstable")?;
    assert!(
        tier.is_at_least(307),
        "the tier has the sum of its pods' requests, not {tier}"
    );

    let expected = i32::try_from(1000 - 1000 * 16 * MI / memory::total_bytes()?)?.clamp(3, 999);
    assert_eq!(oom_score_adj(&node, "burstable", "bounded")?, expected);
    Ok(())
}

#[test]
fn a_best_effort_pod_has_minimal_shares() -> Result<()> {
    let node = node()?;
    node.apply(&pod(
        "best-effort",
        &json!({ "containers": [waiting("main")] }),
    ))?;
    let seen = node.wait_ready("best-effort")?;
    assert_eq!(seen["status"]["qosClass"], "BestEffort");
    let path = cgroup_of(&seen, "besteffort/");
    let inner = cgroup_in(&node, &path, ("best-effort", "main"))?;
    assert_pod(&node, &path, (2, None, None))?;
    assert_container(&node, &inner, (2, None, None))?;
    let tier = share(&node, "kubepods/besteffort")?;
    assert!(tier.is_of_pod(2), "{tier}");
    assert_eq!(oom_score_adj(&node, "best-effort", "main")?, 1000);
    Ok(())
}

#[test]
fn an_edit_of_limits_reaches_the_pod_and_its_container() -> Result<()> {
    let node = node()?;
    let of = |limits: Value, requests: Value| {
        let main = bounded("main", &requests, &limits);
        pod(
            "resized",
            &json!({ "containers": [main, waiting_with_limits()] }),
        )
    };
    node.apply(&of(json!({ "cpu": "100m", "memory": "16Mi" }), json!({})))?;
    let seen = node.wait_ready("resized")?;
    let path = cgroup_of(&seen, "");
    assert_pod(&node, &path, (204, Some(20_000), Some(32)))?;

    node.apply(&of(json!({ "cpu": "200m", "memory": "64Mi" }), json!({})))?;
    node.wait("resized", "has its new container", |pod| {
        is_ready(pod) && restarts(pod, "main") == 1
    })?;
    let inner = cgroup_in(&node, &path, ("resized", "main"))?;
    assert_container(&node, &inner, (204, Some(20_000), Some(64)))?;
    assert_pod(&node, &path, (307, Some(30_000), Some(80)))?;

    // A lower request makes the pod burstable: it needs another cgroup, and so another sandbox.
    node.apply(&of(
        json!({ "cpu": "200m", "memory": "64Mi" }),
        json!({ "cpu": "50m" }),
    ))?;
    let seen = node.wait("resized", "is burstable", |pod| {
        is_ready(pod) && restarts(pod, "main") == 2
    })?;
    assert_eq!(seen["status"]["qosClass"], "Burstable");
    let moved = cgroup_of(&seen, "burstable/");
    assert_pod(&node, &moved, (153, Some(30_000), Some(80)))?;
    let inner = cgroup_in(&node, &moved, ("resized", "main"))?;
    assert_container(&node, &inner, (51, Some(20_000), Some(64)))?;
    assert_eq!(restarts(&seen, "other"), 1, "every container moves");
    assert!(!exists(&node, &path)?, "the old cgroup is gone");

    node.apply(&of(json!({}), json!({ "cpu": "50m" })))?;
    node.wait("resized", "has no limits any more", |pod| {
        is_ready(pod) && restarts(pod, "main") == 3
    })?;
    assert_pod(&node, &moved, (153, None, None))?;
    Ok(())
}

#[test]
fn containers_share_what_their_pod_has() -> Result<()> {
    let node = node()?;
    let own = json!({ "limits": { "cpu": "500m", "memory": "64Mi" } });
    let small = bounded("small", &json!({}), &json!({ "memory": "16Mi" }));
    let spec = json!({ "resources": own, "containers": [small, waiting("free")] });
    node.apply(&pod("shared", &spec))?;
    let seen = node.wait_ready("shared")?;
    // Nothing but a container's request is requested of memory.
    assert_eq!(seen["status"]["qosClass"], "Burstable");
    let path = cgroup_of(&seen, "burstable/");
    assert_pod(&node, &path, (512, Some(50_000), Some(64)))?;
    for (name, memory) in [("small", 16), ("free", 64)] {
        let inner = cgroup_in(&node, &path, ("shared", name))?;
        assert_container(&node, &inner, (512, Some(50_000), Some(memory)))?;
    }

    let own = json!({
        "limits": { "cpu": "250m", "memory": "96Mi" },
        "requests": { "cpu": "250m", "memory": "96Mi" },
    });
    node.apply(&pod(
        "shared",
        &json!({ "resources": own, "containers": [waiting("small"), waiting("free")] }),
    ))?;
    let seen = node.wait("shared", "has what it was given", |pod| {
        is_ready(pod) && restarts(pod, "free") == 1
    })?;
    assert_eq!(seen["status"]["qosClass"], "Guaranteed");
    let path = cgroup_of(&seen, "");
    assert_pod(&node, &path, (256, Some(25_000), Some(96)))?;
    Ok(())
}

fn waiting_with_limits() -> Value {
    bounded(
        "other",
        &json!({}),
        &json!({ "cpu": "100m", "memory": "16Mi" }),
    )
}

#[test]
fn a_container_over_its_memory_limit_is_oom_killed() -> Result<()> {
    let node = node()?;
    let limits = json!({ "resources": { "limits": { "memory": "16Mi" } } });
    let greedy = shell(
        "main",
        "while [ ! -e /root/grow ]; do sleep 0.1; done; exec dd if=/dev/zero of=/dev/null bs=64M count=1",
    );
    let modest = shell("modest", "exec dd if=/dev/zero of=/dev/null bs=1M count=64");
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [with(greedy, &limits), with(modest, &limits)],
    });
    node.apply(&pod("greedy", &spec))?;
    // containerd misses OOM kills right after the start, before it watches the container.
    node.wait("greedy", "runs", |pod| {
        container(pod, "main")["state"]["running"].is_object()
    })?;
    let pid = node.truth().pid(&node.running("greedy", "main")?.id)?;
    std::fs::write(format!("/proc/{pid}/root/root/grow"), "")?;
    // The kernel's event may come after the container's exit.
    let seen = node.wait("greedy", "says why", |pod| {
        has_ended(pod) && container(pod, "main")["state"]["terminated"]["reason"] == "OOMKilled"
    })?;
    assert_eq!(seen["status"]["phase"], "Failed");
    assert_eq!(
        container(&seen, "main")["state"]["terminated"]["exitCode"],
        137
    );
    let end = &container(&seen, "modest")["state"]["terminated"];
    assert_eq!(
        end["reason"], "Completed",
        "its neighbour has a limit of its own"
    );
    Ok(())
}

#[test]
fn a_pod_has_a_limit_of_processes() -> Result<()> {
    let node = node()?;
    let script = "exec 2>&1; i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i + 1)); done; \
                  echo no limit";
    let spec = json!({ "restartPolicy": "Never", "containers": [shell("main", script)] });
    node.apply(&pod("forks", &spec))?;
    node.wait_end("forks")?;
    let log = node.log("forks", "main")?;
    assert!(
        log.contains("can't fork: Resource temporarily unavailable"),
        "{log}"
    );
    assert!(!log.contains("no limit"), "{log}");
    Ok(())
}

/// Moves a process into the pod's cgroup. In version 2, one with controllers for its children has no process itself.
fn join(pod: &Path, pid: u32) -> std::io::Result<()> {
    let mut directory = pod.to_path_buf();
    if directory.join("cgroup.controllers").exists() {
        directory.push("lost");
        std::fs::create_dir(&directory)?;
    }
    std::fs::write(directory.join("cgroup.procs"), pid.to_string())
}

#[test]
fn a_lost_process_does_not_block_the_end_of_its_pod() -> Result<()> {
    let node = node()?;
    node.apply(&pod("lossy", &json!({ "containers": [waiting("main")] })))?;
    let seen = node.wait_ready("lossy")?;
    // As left behind by a runtime whose creation of a sandbox was interrupted.
    let mut lost = Command::new("sleep").arg("3600").spawn()?;
    let path = cgroup_of(&seen, "besteffort/");
    let joined = cgroups::at(node.scratch().tag(), &path)?
        .into_iter()
        .map(|directory| join(&directory, lost.id()));
    let joined = joined.collect::<Result<Vec<()>, _>>();
    let gone = joined.map_err(anyhow::Error::from).and_then(|_| {
        node.remove("lossy")?;
        node.wait_gone("lossy")
    });
    let killed = lost.try_wait()?.is_some();
    lost.kill()?;
    lost.wait()?;
    gone?;
    assert!(killed);
    assert!(!exists(&node, &path)?);
    Ok(())
}
