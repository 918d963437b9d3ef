//! Requests and limits: their values in cgroups, and the effects of limits. The values are read
//! from cgroup version 1.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use rubelet_testbed::Node;
use rubelet_testbed::cleanup::cgroups;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{container, has_ended, is_ready, restarts};
use serde_json::{Value, json};

/// Maximum number of processes of a pod.
const PIDS: u64 = 40;
/// The kernel's value for a cgroup without a memory limit.
const UNLIMITED: &str = "9223372036854771712";
const MI: u64 = 1 << 20;

fn node() -> Result<Arc<Node>> {
    Node::shared_with(|builder| builder.config("podPidsLimit", PIDS))
}

fn bounded(name: &str, requests: &Value, limits: &Value) -> Value {
    let resources = json!({ "resources": { "requests": requests, "limits": limits } });
    with(waiting(name), &resources)
}

/// The value in `file` of the cgroup with this path below the instance's own. It is read from the
/// hierarchy that has such a file.
fn value(node: &Node, path: &str, file: &str) -> Result<String> {
    let tag = node.scratch().tag();
    let of_path = |found: &PathBuf| found.ends_with(format!("{tag}/{path}"));
    let found = cgroups::of(tag)?.into_iter().filter(of_path);
    let text = found
        .map(|directory| directory.join(file))
        .find_map(|file| std::fs::read_to_string(file).ok());
    let text = text.with_context(|| format!("no cgroup {path} has a file {file}"))?;
    Ok(text.trim().to_owned())
}

/// CPU shares, CPU quota and memory limit of a cgroup.
fn values(node: &Node, path: &str) -> Result<[String; 3]> {
    let [shares, quota, memory] = ["cpu.shares", "cpu.cfs_quota_us", "memory.limit_in_bytes"]
        .map(|file| value(node, path, file));
    Ok([shares?, quota?, memory?])
}

fn three(shares: u64, quota: i64, memory: &str) -> [String; 3] {
    [shares.to_string(), quota.to_string(), memory.to_owned()]
}

/// Path of the pod's cgroup, from its UID and its QoS class.
fn cgroup_of(pod: &Value, tier: &str) -> String {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    format!("kubepods/{tier}pod{uid}")
}

/// Path of a container's cgroup in the pod's.
fn cgroup_in(node: &Node, path: &str, (pod, container): (&str, &str)) -> Result<String> {
    let id = node.running(pod, container)?.id;
    Ok(format!("{path}/{}", node.runtime().cgroup_name(&id)))
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
    let memory = (32 * MI).to_string();
    assert_eq!(
        values(&node, &path)?,
        three(512, 50_000, &memory),
        "the pod"
    );
    let inner = cgroup_in(&node, &path, ("guaranteed", "main"))?;
    assert_eq!(
        values(&node, &inner)?,
        three(512, 50_000, &memory),
        "the container"
    );
    assert_eq!(value(&node, &path, "cpu.cfs_period_us")?, "100000");
    assert_eq!(value(&node, &path, "pids.max")?, PIDS.to_string());

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
    assert_eq!(
        values(&node, &path)?,
        three(307, -1, UNLIMITED),
        "one container has no limit, so the pod has none"
    );
    let of = |name: &str| -> Result<[String; 3]> {
        values(&node, &cgroup_in(&node, &path, ("burstable", name))?)
    };
    assert_eq!(of("bounded")?, three(102, -1, &(32 * MI).to_string()));
    assert_eq!(of("open")?, three(204, -1, UNLIMITED));

    let cpus = std::thread::available_parallelism()?.get() as u64;
    assert_eq!(
        value(&node, "kubepods", "cpu.shares")?,
        (cpus * 1024).to_string()
    );
    let tier: u64 = value(&node, "kubepods/burstable", "cpu.shares")?.parse()?;
    assert!(
        tier >= 307,
        "the tier has the sum of its pods' requests, not {tier}"
    );

    let info = std::fs::read_to_string("/proc/meminfo")?;
    let total = info.lines().find_map(|line| {
        let rest = line.strip_prefix("MemTotal:")?.trim();
        rest.strip_suffix(" kB")?.parse::<u64>().ok()
    });
    let total = total.context("the kernel tells the memory")? * 1024;
    let expected = i32::try_from(1000 - 1000 * 16 * MI / total)?.clamp(3, 999);
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
    for path in [path, inner] {
        assert_eq!(values(&node, &path)?, three(2, -1, UNLIMITED), "{path}");
    }
    assert_eq!(value(&node, "kubepods/besteffort", "cpu.shares")?, "2");
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
    let memory = |size: u64| (size * MI).to_string();
    assert_eq!(values(&node, &path)?, three(204, 20_000, &memory(32)));

    node.apply(&of(json!({ "cpu": "200m", "memory": "64Mi" }), json!({})))?;
    node.wait("resized", "has its new container", |pod| {
        is_ready(pod) && restarts(pod, "main") == 1
    })?;
    let inner = cgroup_in(&node, &path, ("resized", "main"))?;
    assert_eq!(
        values(&node, &inner)?,
        three(204, 20_000, &memory(64)),
        "the container"
    );
    assert_eq!(
        values(&node, &path)?,
        three(307, 30_000, &memory(80)),
        "the pod"
    );

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
    assert_eq!(values(&node, &moved)?, three(153, 30_000, &memory(80)));
    let inner = cgroup_in(&node, &moved, ("resized", "main"))?;
    assert_eq!(values(&node, &inner)?, three(51, 20_000, &memory(64)));
    assert_eq!(restarts(&seen, "other"), 1, "every container moves");
    assert!(
        value(&node, &path, "cpu.shares").is_err(),
        "the old cgroup is gone"
    );

    node.apply(&of(json!({}), json!({ "cpu": "50m" })))?;
    node.wait("resized", "has no limits any more", |pod| {
        is_ready(pod) && restarts(pod, "main") == 3
    })?;
    assert_eq!(values(&node, &moved)?, three(153, -1, UNLIMITED));
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
    let memory = |size: u64| (size * MI).to_string();
    assert_eq!(values(&node, &path)?, three(512, 50_000, &memory(64)));
    let of = |name: &str| -> Result<[String; 3]> {
        values(&node, &cgroup_in(&node, &path, ("shared", name))?)
    };
    assert_eq!(of("small")?, three(512, 50_000, &memory(16)));
    assert_eq!(of("free")?, three(512, 50_000, &memory(64)));

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
    assert_eq!(values(&node, &path)?, three(256, 25_000, &memory(96)));
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
    // containerd misses OOM kills right after the start, before it watches the container.
    let greedy = shell(
        "main",
        "sleep 2; exec dd if=/dev/zero of=/dev/null bs=64M count=1",
    );
    let modest = shell("modest", "exec dd if=/dev/zero of=/dev/null bs=1M count=64");
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [with(greedy, &limits), with(modest, &limits)],
    });
    node.apply(&pod("greedy", &spec))?;
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

#[test]
fn a_lost_process_does_not_block_the_end_of_its_pod() -> Result<()> {
    let node = node()?;
    node.apply(&pod("lossy", &json!({ "containers": [waiting("main")] })))?;
    let seen = node.wait_ready("lossy")?;
    // As left behind by a runtime whose creation of a sandbox was interrupted.
    let mut lost = Command::new("sleep").arg("3600").spawn()?;
    let path = cgroup_of(&seen, "besteffort/");
    let tag = node.scratch().tag();
    let of_path = |found: &PathBuf| found.ends_with(format!("{tag}/{path}"));
    let joined = cgroups::of(tag)?
        .into_iter()
        .filter(of_path)
        .map(|directory| std::fs::write(directory.join("cgroup.procs"), lost.id().to_string()));
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
    assert!(value(&node, &path, "cpu.shares").is_err());
    Ok(())
}
