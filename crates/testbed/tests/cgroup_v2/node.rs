//! A guest in which the agent runs with the runtime inside of it.

use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::Vm;
use rubelet_testbed::agent::binary;
use rubelet_testbed::images;
use rubelet_testbed::status::container;
use rubelet_testbed::vm::Image;
use serde_json::Value;

use crate::guest::MODULES;

/// How long one command may take. The guest is an order of magnitude slower than its host, which may
/// be busy.
const COMMAND: Duration = Duration::from_secs(100);
/// How often to look for what is waited for before giving up.
const LOOKS: u32 = 120;

/// Starts the agent.
const AGENT: &str = "rubelet run --config /etc/rubelet.yaml --pod-manifest-path /manifests \
    --hostname-override guest >> /run/agent.log 2>&1 & echo $! > /run/agent.pid";

/// A configuration with this cgroup driver.
fn configuration(driver: &str) -> String {
    let version = "kubelet.config.k8s.io/v1beta1";
    format!("apiVersion: {version}\nkind: KubeletConfiguration\ncgroupDriver: {driver}\n")
}

/// A guest in which the agent runs.
pub(crate) struct Node {
    vm: Vm,
}

impl Node {
    pub(crate) fn start(image: Image, driver: &str) -> Result<Self> {
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
        vm.run(AGENT, COMMAND)?;
        Ok(Self { vm })
    }

    /// Kills the agent and starts it again.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.run("kill -9 $(cat /run/agent.pid); while kill -0 $(cat /run/agent.pid); do :; done")?;
        self.run(AGENT).map(drop)
    }

    pub(crate) fn run(&mut self, command: &str) -> Result<String> {
        self.vm.run(command, COMMAND)
    }

    /// Puts a pod into the directory of manifests.
    pub(crate) fn apply(&mut self, pod: &Value) -> Result<()> {
        let name = pod["metadata"]["name"]
            .as_str()
            .context("a pod has a name")?;
        let text = pod.to_string().replace('\'', "'\\''");
        let command =
            format!("printf %s '{text}' > /staged/p && mv /staged/p /manifests/{name}.json");
        self.run(&command).map(drop)
    }

    /// Waits until a pod is as wanted; the pod.
    pub(crate) fn wait(
        &mut self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
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
    pub(crate) fn remove(&mut self, name: &str, cgroup: &str) -> Result<()> {
        self.run(&format!("rm /manifests/{name}.json"))?;
        let look = format!("[ -e {cgroup} ] || exit 0; sleep 0.2");
        self.run(&format!("for i in $(seq 100); do {look}; done; exit 1"))?;
        Ok(())
    }

    /// The directory of a container's cgroup.
    pub(crate) fn cgroup(&mut self, pod: &Value, name: &str) -> Result<String> {
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
