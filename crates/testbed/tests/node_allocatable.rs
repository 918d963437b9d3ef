//! `enforceNodeAllocatable`: limits of the cgroup of all pods and of the system's, read back, and
//! what they do.

use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::cgroup_limits::{memory_limit_file, memory_usage};
use rubelet_testbed::cleanup::cgroups;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{container, has_ended};
use rubelet_testbed::{Agent, CgroupDriver, CgroupLimits, Node, TestRuntime, memory, wait};
use serde_json::{Value, json};

const MI: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The most processes of the machine.
fn pids() -> Result<u64> {
    let limits = ["pid_max", "threads-max"].map(|name| -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}"))?;
        Ok(text.trim().parse()?)
    });
    let [most, threads] = limits;
    Ok(most?.min(threads?))
}

/// Events about the node with that reason.
fn events(node: &Node, reason: &str) -> Result<Vec<String>> {
    let list = node.agent().get_json("/api/v1/namespaces/default/events")?;
    let events = list["items"].as_array().cloned().unwrap_or_default();
    let about = events.iter().filter(|event| event["reason"] == reason);
    Ok(about
        .map(|event| event["message"].as_str().unwrap_or_default().to_owned())
        .collect())
}

/// The cgroup `system` of the instance, as a configuration names it.
fn system_cgroup(tag: &str) -> Result<String> {
    Ok(CgroupDriver::wanted()?.configured(&format!("{tag}/system")))
}

/// Limits the pods, and the cgroup of that name, to what is reserved.
fn reserving(builder: AgentBuilder, reserved: &Value, name: &str) -> AgentBuilder {
    builder
        .config("systemReserved", reserved.clone())
        .config("systemReservedCgroup", name)
        .config("enforceNodeAllocatable", json!(["pods", "system-reserved"]))
}

#[test]
fn pods_and_the_system_are_limited_to_their_parts() -> Result<()> {
    let runtime = TestRuntime::start()?;
    let tag = runtime.scratch().tag().to_owned();
    let reserved = json!({ "cpu": "100m", "memory": "200Mi", "pid": "500" });
    cgroups::create(&format!("{tag}/system"))?;
    let system = system_cgroup(&tag)?;
    let node = Node::start_on(runtime, |builder| reserving(builder, &reserved, &system))?;
    let cpus = std::thread::available_parallelism()?.get() as u64;
    let limit = memory::total_bytes()? - 200 * MI;
    // Without any pod.
    for (path, shares, memory, pids) in [
        (
            "kubepods",
            (cpus * 1000 - 100) * 1024 / 1000,
            limit,
            pids()? - 500,
        ),
        ("system", 102, 200 * MI, 500),
    ] {
        let found = CgroupLimits::of(&tag, path)?;
        assert!(found.share.is_of_pod(shares), "{path}: {}", found.share);
        assert_eq!(found.memory, Some(memory), "{path}");
        assert_eq!(found.pids, Some(pids), "{path}");
    }
    let mut told = events(&node, "NodeAllocatableEnforced")?;
    told.sort_unstable();
    assert_eq!(
        told,
        [
            "Updated Node Allocatable limit across pods".to_owned(),
            format!("Updated limits on system reserved cgroup {system}"),
        ]
    );

    let file = memory_limit_file(&tag, "kubepods")?;
    std::fs::write(file, (512 * MI).to_string())?;
    node.apply(&pod("next", &json!({ "containers": [waiting("main")] })))?;
    node.wait_ready("next")?;
    let again = CgroupLimits::of(&tag, "kubepods")?.memory;
    assert_eq!(again, Some(limit), "set again");
    Ok(())
}

#[test]
fn a_node_without_the_system_cgroup_does_not_start() -> Result<()> {
    let runtime = TestRuntime::start()?;
    let system = system_cgroup(runtime.scratch().tag())?;
    let builder = Agent::builder(&runtime);
    let mut agent = reserving(builder, &json!({ "cpu": "100m" }), &system).start()?;
    let status = wait::until("the agent exits", TIMEOUT, || agent.exit_status())?;
    assert_eq!(status.code(), Some(1));
    let log = std::fs::read_to_string(agent.log_path())?;
    let tag = runtime.scratch().tag();
    let error = log.lines().find(|line| line.starts_with("error: "));
    let error = error.with_context(|| log.clone())?;
    assert!(
        error.contains("must exist before the agent starts"),
        "{error}"
    );
    assert!(
        error.ends_with("correct systemReservedCgroup, or take \"system-reserved\" out of enforceNodeAllocatable"),
        "{error}"
    );
    assert!(cgroups::at(tag, "system")?.is_empty(), "it is not created");
    Ok(())
}

#[test]
fn pods_together_do_not_use_what_is_reserved() -> Result<()> {
    // 128 MiB are left, of a machine that has more.
    let reserved = json!({ "memory": format!("{}", memory::total_bytes()? - 128 * MI) });
    let node = Node::start_with(|builder| {
        builder
            .config("systemReserved", reserved)
            // Nothing is evicted: the limit alone is tested.
            .config("evictionHard", json!({ "memory.available": "0%" }))
    })?;
    let tag = node.scratch().tag();
    let all = CgroupLimits::of(tag, "kubepods")?;
    assert_eq!(all.memory, Some(128 * MI));
    // Holds the memory, until its reader ends.
    let holds = |name: &str| shell(name, "dd if=/dev/zero bs=80M count=1 | sleep 3600");
    let limits = json!({ "resources": { "limits": { "cpu": "100m", "memory": "100Mi" } } });
    let guaranteed = with(holds("main"), &limits);
    node.apply(&pod("guaranteed", &json!({ "containers": [guaranteed] })))?;
    let seen = node.wait_ready("guaranteed")?;
    let uid = seen["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    wait::until("the pod has its memory", TIMEOUT, || {
        let used = memory_usage(tag, &format!("kubepods/pod{uid}"))?;
        Ok((used > 80 * MI).then_some(()))
    })?;
    // Without a limit of its own.
    let script = "exec dd if=/dev/zero of=/dev/null bs=80M count=1";
    let greedy = json!({ "restartPolicy": "Never", "containers": [shell("main", script)] });
    node.apply(&pod("greedy", &greedy))?;
    let seen = node.wait("greedy", "was killed", has_ended)?;
    let end = &container(&seen, "main")["state"]["terminated"];
    assert_eq!(end["exitCode"], 137, "{end}");
    let seen = node.pod("guaranteed")?.context("the pod")?;
    assert_eq!(container(&seen, "main")["restartCount"], 0, "{seen:#}");
    Ok(())
}
