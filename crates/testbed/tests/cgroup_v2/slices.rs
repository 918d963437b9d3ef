//! Pods of containerd on the host that most people have: cgroup version 2 with systemd.

use anyhow::Result;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{ended, restarts, runs};
use serde_json::{Value, json};

use crate::node::{Node, POD_PIDS};
use crate::pods::{
    KUBEPODS, assert_group_kill_is_kept, assert_holds, assert_node_slices, edit_the_limits, limited,
};

/// Once it is told to, its child takes too much memory. An OOM kill hits the whole container, whichever of its processes
/// is too large: without that, the last command would run.
const GROWS: &str = "until [ -e /grow ]; do sleep 1; done; tail /dev/zero & wait; sleep 1000";

#[test]
fn systemd_keeps_the_cgroups_of_containerd() -> Result<()> {
    let mut node = Node::start_with_containerd()?;
    node.apply(&limited())?;
    let requests = json!({ "resources": { "requests": { "cpu": "500m" } } });
    let shares = with(waiting("main"), &requests);
    let small = json!({ "resources": { "limits": { "memory": "16Mi" } } });
    let grows = with(shell("grows", GROWS), &small);
    let spec = json!({ "restartPolicy": "Never", "containers": [shares, grows] });
    node.apply(&pod("shares", &spec))?;

    let seen = node.wait("limited", "runs", |pod| runs(pod, "main"))?;
    let cgroup = node.cgroup(&seen, "main")?;
    let (slice, scope) = cgroup.rsplit_once('/').unwrap();
    assert!(
        slice.starts_with(&format!("{KUBEPODS}/kubepods-pod")) && slice.ends_with(".slice"),
        "{cgroup}"
    );
    assert!(
        scope.starts_with("cri-containerd-") && scope.ends_with(".scope"),
        "{cgroup}"
    );
    let expected = [
        ("cpu.max", "50000 100000"),
        ("memory.max", "67108864"),
        ("memory.swap.max", "0"),
        ("../cpu.weight", "20"),
        ("../cpu.max", "50000 100000"),
        ("../memory.max", "67108864"),
        ("../pids.max", POD_PIDS),
    ];
    assert_holds(&mut node, &cgroup, &expected)?;
    let both_run = |pod: &Value| runs(pod, "main") && runs(pod, "grows");
    let seen = node.wait("shares", "runs", both_run)?;
    let grows = node.cgroup(&seen, "grows")?;
    assert_node_slices(&mut node)?;
    node.run("systemctl daemon-reload")?;
    assert_node_slices(&mut node)?;
    assert_holds(&mut node, &cgroup, &expected)?;
    assert_group_kill_is_kept(&mut node, &grows)?;

    node.run(&format!(
        "touch /proc/$(head -n 1 {grows}/cgroup.procs)/root/grow"
    ))?;
    let was_killed = |pod: &Value| ended(pod, "grows").is_object();
    let seen = node.wait("shares", "has a killed container", was_killed)?;
    let end = ended(&seen, "grows");
    assert_eq!(end["reason"], "OOMKilled", "{end}");
    assert_eq!(end["exitCode"], 137, "{end}");

    let usage = node.run("rubelet top --containers")?;
    let of_main = |line: &&str| line.contains("limited-guest") && line.contains("main");
    let row = usage.lines().find(of_main);
    let memory = row.and_then(|row| row.split_whitespace().last());
    assert!(memory.is_some_and(|text| text.ends_with("Mi")), "{usage}");

    // The pod continues without the agent, and with the next one.
    node.restart()?;
    let again = node.wait("limited", "runs", |pod| runs(pod, "main"))?;
    assert_eq!(node.cgroup(&again, "main")?, cgroup);
    assert_eq!(restarts(&again, "main"), 0);
    edit_the_limits(&mut node, &cgroup)?;

    let times = |wanted| move |pod: &Value| runs(pod, "main") && restarts(pod, "main") == wanted;
    let again = node.wait("limited", "has its new container", times(1))?;
    let cgroup = node.cgroup(&again, "main")?;
    node.run(&format!("kill -9 $(head -n 1 {cgroup}/cgroup.procs)"))?;
    node.wait("limited", "was started again", times(2))?;

    node.run("rm /manifests/*.json")?;
    let list = "systemctl list-units --all --plain --no-legend";
    for units in ["cri-containerd-*.scope", "kubepods-*pod*.slice"] {
        node.wait_for(&format!("[ -z \"$({list} '{units}')\" ]"))?;
    }
    let slices = "find /sys/fs/cgroup /run/systemd -name 'kubepods-*pod*.slice*'";
    assert_eq!(node.run(slices)?, "");
    Ok(())
}
