//! The agent with the runtime inside of it, and pods, in a guest: limits, want of memory, devices.

use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::Vm;
use rubelet_testbed::agent::binary;
use rubelet_testbed::images;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{container, ended, has_ended, runs};
use rubelet_testbed::vm::Image;
use serde_json::{Value, json};

use crate::guest::MODULES;

/// How long one command may take. The guest is an order of magnitude slower than its host.
const COMMAND: Duration = Duration::from_secs(30);
/// How often to look for what is waited for before giving up.
const LOOKS: u32 = 120;

/// A configuration with this cgroup driver.
fn configuration(driver: &str) -> String {
    let version = "kubelet.config.k8s.io/v1beta1";
    format!("apiVersion: {version}\nkind: KubeletConfiguration\ncgroupDriver: {driver}\n")
}

/// A guest in which the agent runs.
struct Node {
    vm: Vm,
}

impl Node {
    fn start(image: Image, driver: &str) -> Result<Self> {
        let archive = tempfile::Builder::new().prefix("rbt-vm-").tempdir()?;
        let path = archive.path().join("images.tar");
        images::write_archive(&path)?;
        let image = image
            .program("/usr/local/bin/rubelet", binary()?)
            .file("/images.tar", std::fs::read(&path)?)
            .file("/etc/rubelet.yaml", configuration(driver))
            .modules(&MODULES);
        let mut vm = Vm::boot(&image, 1536)?;
        vm.run("mkdir -p /manifests /staged", COMMAND)?;
        vm.run("rubelet image load /images.tar", COMMAND)?;
        let start = "rubelet run --config /etc/rubelet.yaml --pod-manifest-path /manifests \
                     --hostname-override guest > /run/agent.log 2>&1 &";
        vm.run(start, COMMAND)?;
        Ok(Self { vm })
    }

    fn run(&mut self, command: &str) -> Result<String> {
        self.vm.run(command, COMMAND)
    }

    /// Puts a pod into the folder of manifests.
    fn apply(&mut self, pod: &Value) -> Result<()> {
        let name = pod["metadata"]["name"]
            .as_str()
            .context("a pod has a name")?;
        let text = pod.to_string().replace('\'', "'\\''");
        let command =
            format!("printf %s '{text}' > /staged/p && mv /staged/p /manifests/{name}.json");
        self.run(&command).map(drop)
    }

    /// Waits until a pod is as wanted; the pod.
    fn wait(&mut self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let command = format!("rubelet get pod {name}-guest -o json");
        let mut last = String::new();
        for _ in 0..LOOKS {
            let ran = self.vm.try_run(&command, COMMAND)?;
            if let Ok(pod) = serde_json::from_str::<Value>(&ran.output)
                && wanted(&pod)
            {
                return Ok(pod);
            }
            last = ran.output;
            self.run("sleep 0.3")?;
        }
        let log = self.run("tail -n 40 /run/agent.log")?;
        anyhow::bail!("waited in vain until pod {name} {what}:\n{last}\n{log}")
    }

    /// Removes the pod and waits until the cgroup of its container is gone.
    fn remove_limited(&mut self, cgroup: &str) -> Result<()> {
        self.run("rm /manifests/limited.json")?;
        let look = format!("[ -e {cgroup} ] || exit 0; sleep 0.2");
        self.run(&format!("for i in $(seq 100); do {look}; done; exit 1"))?;
        Ok(())
    }

    /// The folder of a container's cgroup.
    fn cgroup(&mut self, pod: &Value, name: &str) -> Result<String> {
        let id = container(pod, name)["containerID"]
            .as_str()
            .unwrap_or_default();
        let id = id.rsplit('/').next().unwrap_or_default();
        assert!(!id.is_empty(), "{pod:#}");
        let found = self.run(&format!(
            "find /sys/fs/cgroup -type d -name '*{id}*' | head -n 1"
        ))?;
        assert!(!found.is_empty(), "no cgroup of {id}");
        Ok(found.trim().to_owned())
    }
}

/// Shows which devices a process may use, as root with the right to make nodes.
const DEVICES: &str = "mknod /null c 1 3 && echo x > /null && echo null-works; \
    mknod /kmsg c 1 11 && { cat /kmsg 2>&1; echo read-kmsg-$?; }; \
    mknod /console c 5 1 && { echo x 2>&1 > /console; echo wrote-console-$?; }";

/// A pod with half a processor and 64 MiB.
fn limited() -> Value {
    let limits = json!({ "cpu": "500m", "memory": "64Mi" });
    let main = with(
        waiting("main"),
        &json!({ "resources": { "limits": limits } }),
    );
    pod("limited", &json!({ "containers": [main] }))
}

#[test]
fn pods_have_limits_run_out_of_memory_and_reach_no_devices() -> Result<()> {
    let mut node = Node::start(Image::default(), "cgroupfs")?;
    node.apply(&limited())?;
    let grows = with(
        shell("grows", "exec tail /dev/zero"),
        &json!({ "resources": { "limits": { "memory": "16Mi" } } }),
    );
    let spec = json!({ "restartPolicy": "Never", "containers": [grows] });
    node.apply(&pod("grows", &spec))?;
    let spec = json!({ "restartPolicy": "Never", "containers": [shell("main", DEVICES)] });
    node.apply(&pod("devices", &spec))?;

    let seen = node.wait("limited", "runs", |pod| runs(pod, "main"))?;
    let cgroup = node.cgroup(&seen, "main")?;
    assert!(cgroup.contains("/kubepods/pod"), "guaranteed: {cgroup}");
    for (file, expected) in [
        ("cpu.max", "50000 100000"),
        ("memory.max", "67108864"),
        ("memory.swap.max", "0"),
        // Of 512 shares, by the curve of the runtimes.
        ("cpu.weight", "59"),
        ("../cpu.max", "50000 100000"),
        ("../memory.max", "67108864"),
    ] {
        let value = node.run(&format!("cat {cgroup}/{file}"))?;
        assert_eq!(value.trim(), expected, "{file}");
    }
    assert!(!node.run(&format!("cat {cgroup}/cgroup.procs"))?.is_empty());

    let seen = node.wait("grows", "was killed", has_ended)?;
    let end = ended(&seen, "grows");
    assert_eq!(end["reason"], "OOMKilled", "{end}");
    assert_eq!(end["exitCode"], 137, "{end}");
    assert_eq!(seen["status"]["phase"], "Failed");

    node.wait("devices", "has ended", has_ended)?;
    let log = node.run("cat /var/log/pods/default_devices-guest_*/main/0.log")?;
    assert!(log.contains("null-works"), "{log}");
    assert!(
        log.contains("read-kmsg-1") && log.contains("not permitted"),
        "{log}"
    );
    assert!(!log.contains("wrote-console-0"), "{log}");

    node.remove_limited(&cgroup)
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
    // What systemd itself knows survives when it is told to read everything anew.
    node.run("systemctl daemon-reload")?;
    let shown = node.run(&format!(
        "systemctl show -p MemoryMax,ActiveState,Delegate {unit}"
    ))?;
    for expected in ["MemoryMax=67108864", "ActiveState=active", "Delegate=yes"] {
        assert!(shown.contains(expected), "{shown}");
    }
    for (file, expected) in [("cpu.max", "50000 100000"), ("memory.max", "67108864")] {
        let value = node.run(&format!("cat {cgroup}/{file}"))?;
        assert_eq!(value.trim(), expected, "{file}");
    }
    node.remove_limited(&cgroup)?;
    let left = node.run("systemctl list-units --all --plain --no-legend 'rubelet-*.scope'")?;
    assert_eq!(left.trim(), "");
    Ok(())
}
