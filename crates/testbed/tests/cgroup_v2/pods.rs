//! Pods on the embedded runtime, in a guest: limits, OOM kills, devices.

use anyhow::Result;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{ended, has_ended, restarts, runs};
use rubelet_testbed::vm::Image;
use serde_json::{Value, json};

use crate::node::Node;

/// Prints which devices a process may use, as root with CAP_MKNOD.
const DEVICES: &str = "mknod /null c 1 3 && echo x > /null && echo null-works; \
    mknod /kmsg c 1 11 && { cat /kmsg 2>&1; echo read-kmsg-$?; }; \
    mknod /console c 5 1 && { echo x 2>&1 > /console; echo wrote-console-$?; }";

/// A pod with limits of half a CPU and 64 MiB.
fn limited() -> Value {
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
fn assert_holds(node: &mut Node, cgroup: &str, files: &[(&str, &str)]) -> Result<()> {
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
    ];
    assert_holds(&mut node, &cgroup, &expected)?;
    assert!(!node.run(&format!("cat {cgroup}/cgroup.procs"))?.is_empty());

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
    // Properties of the unit survive a reload of systemd.
    node.run("systemctl daemon-reload")?;
    let shown = node.run(&format!(
        "systemctl show -p MemoryMax,ActiveState,Delegate {unit}"
    ))?;
    for expected in ["MemoryMax=67108864", "ActiveState=active", "Delegate=yes"] {
        assert!(shown.contains(expected), "{shown}");
    }
    let expected = [("cpu.max", "50000 100000"), ("memory.max", "67108864")];
    assert_holds(&mut node, &cgroup, &expected)?;
    assert_eq!(node.run(&format!("cat {shim}/cgroup.procs"))?, pid);

    // The pod continues without the agent, and with the next one.
    node.restart()?;
    let again = node.wait("limited", "runs", |pod| runs(pod, "main"))?;
    assert_eq!(node.cgroup(&again, "main")?, cgroup);
    assert_eq!(node.run(&format!("cat {shim}/cgroup.procs"))?, pid);

    node.remove("limited", &cgroup)?;
    let list = "systemctl list-units --all --plain --no-legend 'rubelet-*.scope'";
    node.run(&format!(
        "for i in $(seq 100); do [ -z \"$({list})\" ] && exit 0; sleep 0.2; done; {list}; exit 1"
    ))?;
    assert_eq!(node.run(find)?, "");
    Ok(())
}
