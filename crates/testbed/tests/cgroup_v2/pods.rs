//! Pods on the embedded runtime, in a guest: limits, OOM kills, devices.

use anyhow::Result;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{ended, has_ended, restarts, runs};
use rubelet_testbed::vm::Image;
use serde_json::{Value, json};

use crate::node::{AGENT_CGROUP, Node, POD_PIDS, SYSTEM};

/// Prints which devices a process may use, as root with CAP_MKNOD.
const DEVICES: &str = "mknod /null c 1 3 && echo x > /null && echo null-works; \
    mknod /kmsg c 1 11 && { cat /kmsg 2>&1; echo read-kmsg-$?; }; \
    mknod /console c 5 1 && { echo x 2>&1 > /console; echo wrote-console-$?; }";

/// A pod with limits of half a CPU and 64 MiB.
pub(crate) fn limited() -> Value {
    with_limits("limited", &json!({ "cpu": "500m", "memory": "64Mi" }))
}

fn with_limits(name: &str, limits: &Value) -> Value {
    let main = with(
        waiting("main"),
        &json!({ "resources": { "limits": limits } }),
    );
    pod(name, &json!({ "containers": [main] }))
}

/// Asserts the contents of files in a cgroup.
#[track_caller]
pub(crate) fn assert_holds(node: &mut Node, cgroup: &str, files: &[(&str, &str)]) -> Result<()> {
    for (file, expected) in files {
        let value = node.run(&format!("cat {cgroup}/{file}"))?;
        assert_eq!(value.trim(), *expected, "{cgroup}/{file}");
    }
    Ok(())
}

#[test]
fn pods_have_limits_and_no_access_to_devices() -> Result<()> {
    let mut node = Node::start(Image::default(), "cgroupfs")?;
    node.apply(&limited())?;
    let small = json!({ "resources": { "limits": { "memory": "16Mi" } } });
    let grows = with(shell("grows", "exec tail /dev/zero"), &small);
    // An OOM kill hits the whole container, whichever of its processes is too large.
    let child = with(shell("child", "tail /dev/zero & wait; sleep 1000"), &small);
    let spec = json!({ "restartPolicy": "Never", "containers": [grows, child] });
    node.apply(&pod("grows", &spec))?;
    let spec = json!({ "restartPolicy": "Never", "containers": [shell("main", DEVICES)] });
    node.apply(&pod("devices", &spec))?;
    let resources = json!({ "requests": { "memory": "16Mi" }, "limits": { "memory": "32Mi" } });
    let light = with(waiting("main"), &json!({ "resources": resources }));
    node.apply(&pod("light", &json!({ "containers": [light] })))?;

    let seen = node.wait("limited", "runs", |pod| runs(pod, "main"))?;
    let cgroup = node.cgroup(&seen, "main")?;
    assert!(cgroup.contains("/kubepods/pod"), "guaranteed: {cgroup}");
    let expected = [
        ("cpu.max", "50000 100000"),
        ("memory.max", "67108864"),
        ("memory.swap.max", "0"),
        // From 512 shares, with the conversion of the runtimes.
        ("cpu.weight", "59"),
        ("../cpu.max", "50000 100000"),
        ("../memory.max", "67108864"),
        ("../pids.max", POD_PIDS),
        ("memory.oom.group", "1"),
        // MemoryQoS: all of a Guaranteed pod is protected, and nothing slowed down.
        ("memory.min", "67108864"),
        ("../memory.min", "67108864"),
        ("memory.high", "max"),
    ];
    assert_holds(&mut node, &cgroup, &expected)?;
    assert!(!node.run(&format!("cat {cgroup}/cgroup.procs"))?.is_empty());

    let seen = node.wait("light", "runs", |pod| runs(pod, "main"))?;
    let burstable = node.cgroup(&seen, "main")?;
    let expected = [
        ("memory.low", "16777216"),
        ("../memory.low", "16777216"),
        ("memory.min", "0"),
        ("memory.max", "33554432"),
        // The request and nine tenths of what is between it and the limit, in whole pages.
        ("memory.high", "31875072"),
    ];
    assert_holds(&mut node, &burstable, &expected)?;

    let seen = node.wait("grows", "was killed", has_ended)?;
    for name in ["grows", "child"] {
        let end = ended(&seen, name);
        assert_eq!(end["reason"], "OOMKilled", "{name}: {end}");
        assert_eq!(end["exitCode"], 137, "{name}: {end}");
    }
    assert_eq!(seen["status"]["phase"], "Failed");

    node.wait("devices", "has ended", has_ended)?;
    let log = node.run("cat /var/log/pods/default_devices-guest_*/main/0.log")?;
    assert!(log.contains("null-works"), "{log}");
    assert!(
        log.contains("read-kmsg-1") && log.contains("not permitted"),
        "{log}"
    );
    assert!(!log.contains("wrote-console-0"), "{log}");

    let agent = node.run("cat /proc/$(cat /run/agent.pid)/cgroup")?;
    assert_eq!(agent.trim(), format!("0::{AGENT_CGROUP}"));
    // What ran in no cgroup when the agent started: the guest's timer. Not the first process.
    let others = node.run(&format!("cat /sys/fs/cgroup{SYSTEM}/cgroup.procs"))?;
    assert!(!others.trim().is_empty());
    assert_eq!(node.run("cat /proc/1/cgroup")?.trim(), "0::/");

    // Including the anti-spoofing rules: this is a common kernel.
    let findings = node.run("rubelet doctor --config /etc/rubelet.yaml || true")?;
    assert!(!findings.contains("nft_meta_bridge"), "{findings}");

    node.remove("limited", &cgroup)
}

#[test]
fn edited_limits_are_applied_in_place_with_huge_pages() -> Result<()> {
    let mut node = Node::start(Image::default(), "cgroupfs")?;
    node.run("echo 8 > /proc/sys/vm/nr_hugepages")?;
    node.apply(&limited())?;
    let limits = json!({ "cpu": "100m", "memory": "32Mi", "hugepages-2Mi": "4Mi" });
    node.apply(&with_limits("huge", &limits))?;
    let seen = node.wait("limited", "runs", |pod| runs(pod, "main"))?;
    let before = node.cgroup(&seen, "main")?;
    let inode = |cgroup: &str| format!("stat -c %i {cgroup}/..");
    let directory = node.run(&inode(&before))?;

    let limits = json!({ "cpu": "250m", "memory": "96Mi" });
    node.apply(&with_limits("limited", &limits))?;
    let again = |pod: &Value| runs(pod, "main") && restarts(pod, "main") == 1;
    let seen = node.wait("limited", "has its new container", again)?;
    let cgroup = node.cgroup(&seen, "main")?;
    assert_eq!(
        node.run(&inode(&cgroup))?,
        directory,
        "the pod's is the same"
    );
    let expected = [
        ("cpu.max", "25000 100000"),
        ("memory.max", "100663296"),
        ("../cpu.max", "25000 100000"),
        ("../memory.max", "100663296"),
    ];
    assert_holds(&mut node, &cgroup, &expected)?;

    let seen = node.wait("huge", "runs", |pod| runs(pod, "main"))?;
    let cgroup = node.cgroup(&seen, "main")?;
    let expected = [
        ("hugetlb.2MB.max", "4194304"),
        ("../hugetlb.2MB.max", "4194304"),
    ];
    assert_holds(&mut node, &cgroup, &expected)?;
    node.remove("huge", &cgroup)
}

pub(crate) const KUBEPODS: &str = "/sys/fs/cgroup/kubepods.slice";

/// Asserts the values of the slices of the node and the tiers while Burstable pods request half a
/// CPU in total.
pub(crate) fn assert_node_slices(node: &mut Node) -> Result<()> {
    let number = |text: String| text.trim().parse::<u64>();
    let cpus = number(node.run("grep -c ^processor /proc/cpuinfo")?)?;
    let memory = number(node.run("grep MemTotal /proc/meminfo | tr -dc 0-9")?)? << 10;
    // The kubelet's formula, for 1024 shares per CPU.
    let weight = 1 + (cpus * 1024 - 2) * 9999 / 262_142;
    let (weight, memory) = (weight.to_string(), memory.to_string());
    let expected = [
        ("cpu.weight", weight.as_str()),
        ("memory.max", &memory),
        ("kubepods-burstable.slice/cpu.weight", "20"),
        ("kubepods-besteffort.slice/cpu.weight", "1"),
    ];
    assert_holds(node, KUBEPODS, &expected)
}

#[test]
fn systemd_keeps_the_cgroups_of_containers() -> Result<()> {
    let mut node = Node::start(Image::default().systemd()?, "systemd")?;
    node.apply(&limited())?;
    let seen = node.wait("limited", "runs", |pod| runs(pod, "main"))?;
    let cgroup = node.cgroup(&seen, "main")?;
    assert!(cgroup.ends_with(".scope"), "{cgroup}");
    assert!(cgroup.contains("/kubepods.slice/kubepods-pod"), "{cgroup}");
    let unit = cgroup.rsplit('/').next().unwrap_or_default().to_owned();
    let find = "find /sys/fs/cgroup -type d -name 'rubelet-shim-*.scope'";
    let shim = node.run(find)?.trim().to_owned();
    let slice = "/sys/fs/cgroup/rubelet.slice/rubelet-shims.slice/";
    assert!(shim.starts_with(slice), "{shim}");
    let pid = node.run(&format!("cat {shim}/cgroup.procs"))?;
    let comm = node.run(&format!("cat /proc/{}/comm", pid.trim()))?;
    assert_eq!(comm.trim(), "rubelet-shim");
    let requests = json!({ "resources": { "requests": { "cpu": "500m" } } });
    let shares = json!({ "containers": [with(waiting("main"), &requests)] });
    node.apply(&pod("shares", &shares))?;
    let sharing = node.wait("shares", "runs", |pod| runs(pod, "main"))?;
    let sharing = node.cgroup(&sharing, "main")?;
    let expected = [
        ("cpu.max", "50000 100000"),
        ("memory.max", "67108864"),
        // Also for the first container of the node.
        ("memory.swap.max", "0"),
        ("../cpu.weight", "20"),
        ("../cpu.max", "50000 100000"),
        ("../memory.max", "67108864"),
        ("../pids.max", POD_PIDS),
    ];
    assert_node_slices(&mut node)?;
    assert_holds(&mut node, &cgroup, &expected)?;
    // Properties of the unit survive a reload of systemd.
    node.run("systemctl daemon-reload")?;
    let shown = node.run(&format!(
        "systemctl show -p MemoryMax,MemorySwapMax,ActiveState,Delegate {unit}"
    ))?;
    for expected in [
        "MemoryMax=67108864",
        "MemorySwapMax=0",
        "ActiveState=active",
        "Delegate=yes",
    ] {
        assert!(shown.contains(expected), "{shown}");
    }
    assert_node_slices(&mut node)?;
    assert_holds(&mut node, &cgroup, &expected)?;
    assert_group_kill_is_kept(&mut node, &cgroup)?;
    assert_eq!(node.run(&format!("cat {shim}/cgroup.procs"))?, pid);

    // The pod continues without the agent, and with the next one.
    node.restart()?;
    let again = node.wait("limited", "runs", |pod| runs(pod, "main"))?;
    assert_eq!(node.cgroup(&again, "main")?, cgroup);
    assert_eq!(node.run(&format!("cat {shim}/cgroup.procs"))?, pid);
    edit_the_limits(&mut node, &cgroup)?;

    node.remove("shares", &sharing)?;
    // No pod of that tier is left.
    let weight = "kubepods-burstable.slice/cpu.weight";
    node.wait_for(&format!("[ $(cat {KUBEPODS}/{weight}) = 1 ]"))?;
    node.run("rm /manifests/limited.json")?;
    let list = "systemctl list-units --all --plain --no-legend";
    for units in ["rubelet-*.scope", "kubepods-*pod*.slice"] {
        node.wait_for(&format!("[ -z \"$({list} '{units}')\" ]"))?;
    }
    assert_eq!(node.run(find)?, "");
    let slices = "find /sys/fs/cgroup /run/systemd -name 'kubepods-*pod*.slice*'";
    assert_eq!(node.run(slices)?, "");
    Ok(())
}

/// Asserts that an OOM kill still ends a whole container after somebody has changed that, as systemd does to all scopes
/// when it is reloaded.
pub(crate) fn assert_group_kill_is_kept(node: &mut Node, cgroup: &str) -> Result<()> {
    let file = format!("{cgroup}/memory.oom.group");
    node.run(&format!("echo 0 > {file}"))?;
    node.wait_for(&format!("[ $(cat {file}) = 1 ]"))
}

/// Edits the limits of the pod `limited`, whose container is in `cgroup`, and asserts that its slice is
/// updated. An earlier agent created the slice.
pub(crate) fn edit_the_limits(node: &mut Node, cgroup: &str) -> Result<()> {
    let inode = |cgroup: &str| format!("stat -c %i {cgroup}/..");
    let directory = node.run(&inode(cgroup))?;
    let limits = json!({ "cpu": "250m", "memory": "96Mi" });
    node.apply(&with_limits("limited", &limits))?;
    let again = |pod: &Value| runs(pod, "main") && restarts(pod, "main") == 1;
    let seen = node.wait("limited", "has its new container", again)?;
    let cgroup = node.cgroup(&seen, "main")?;
    assert_eq!(
        node.run(&inode(&cgroup))?,
        directory,
        "the slice of the pod is the same"
    );
    let expected = [
        ("cpu.max", "25000 100000"),
        ("memory.max", "100663296"),
        ("memory.swap.max", "0"),
        ("../cpu.max", "25000 100000"),
        ("../memory.max", "100663296"),
        ("../pids.max", POD_PIDS),
    ];
    assert_holds(node, &cgroup, &expected)?;
    node.run("systemctl daemon-reload")?;
    assert_holds(node, &cgroup, &expected)
}
