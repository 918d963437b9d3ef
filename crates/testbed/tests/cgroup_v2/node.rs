//! A guest in which the agent runs.

use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::Vm;
use rubelet_testbed::agent::binary;
use rubelet_testbed::status::container;
use rubelet_testbed::vm::{Disk, Image, containerd_socket};
use rubelet_testbed::{images, wait};
use serde_json::Value;

use crate::guest::MODULES;
use crate::watch::Pods;

/// Timeout of one command. The guest is an order of magnitude slower than its host, which may be
/// busy.
const COMMAND: Duration = Duration::from_secs(100);
/// The guest's memory.
const MEMORY_MIB: u32 = 1536;
/// Timeout of a wait for a pod.
const WAIT: Duration = Duration::from_secs(180);

/// The command that starts the agent.
const AGENT: &str = "rubelet run --config /etc/rubelet.yaml --pod-manifest-path /manifests --hostname-override guest";

/// `podPidsLimit`: more than any pod of these tests needs.
pub(crate) const POD_PIDS: &str = "1000";

/// `kubeletCgroups`.
pub(crate) const AGENT_CGROUP: &str = "/rubelet-agent";

/// `systemCgroups`.
pub(crate) const SYSTEM: &str = "/rubelet-machine";

/// A configuration with this cgroup driver.
fn configuration(driver: &str) -> String {
    let version = "kubelet.config.k8s.io/v1beta1";
    let mut text = format!(
        "apiVersion: {version}\nkind: KubeletConfiguration\ncgroupDriver: {driver}\n\
         podPidsLimit: {POD_PIDS}\n"
    );
    // systemd leaves no process in the root cgroup.
    if driver == "cgroupfs" {
        text +=
            &format!("cgroupRoot: /\nsystemCgroups: {SYSTEM}\nkubeletCgroups: {AGENT_CGROUP}\n");
        text += "featureGates: {MemoryQoS: true}\nmemoryReservationPolicy: TieredReservation\n";
    }
    text
}

/// The guest's image: the agent, and the images of containers.
pub(crate) fn image_with_agent(image: Image, driver: &str) -> Result<Image> {
    let archive = tempfile::Builder::new().prefix("rbt-vm-").tempdir()?;
    let path = archive.path().join("images.tar");
    images::write_archive(&path)?;
    Ok(image
        .program("/usr/local/bin/rubelet", binary()?)
        .file("/images.tar", std::fs::read(&path)?)
        .file("/etc/rubelet.yaml", configuration(driver))
        .modules(&MODULES))
}

/// A guest in which the agent runs.
pub(crate) struct Node {
    vm: Vm,
    /// Further flags of the agent.
    flags: String,
    /// What the running agent has shown.
    pods: Pods,
}

impl Node {
    /// With the embedded runtime.
    pub(crate) fn start(image: Image, driver: &str) -> Result<Self> {
        let mut node = Self::boot(&image_with_agent(image, driver)?)?;
        node.load_images()?;
        node.start_agent()?;
        Ok(node)
    }

    /// With a containerd that systemd has started, and that has its cgroups made by systemd. The agent's configuration
    /// does not say so: its default is another driver, but that of the runtime counts.
    pub(crate) fn start_with_containerd() -> Result<Self> {
        let image = Image::default().systemd()?.containerd()?;
        let mut node = Self::boot(&image_with_agent(image, "systemd")?)?;
        node.run("sed -i /^cgroupDriver:/d /etc/rubelet.yaml")?;
        let socket = containerd_socket();
        node.run(&format!(
            "systemctl start containerd && \
             ctr --address {socket} --namespace k8s.io images import /images.tar"
        ))?;
        node.flags = format!("--container-runtime-endpoint unix://{socket}");
        node.start_agent()?;
        Ok(node)
    }

    fn boot(image: &Image) -> Result<Self> {
        let mut node = Self {
            vm: Vm::boot(image, MEMORY_MIB)?,
            flags: String::new(),
            pods: Pods::default(),
        };
        node.run("mkdir -p /manifests")?;
        Ok(node)
    }

    /// Boots a guest with its files on a disk, manifests included. The agent does not run yet.
    pub(crate) fn boot_on(image: &Image, disk: &Disk) -> Result<Self> {
        let mut node = Self {
            vm: Vm::boot_on(image, MEMORY_MIB, disk)?,
            flags: String::new(),
            pods: Pods::default(),
        };
        let directory = "/var/lib/manifests";
        node.run(&format!(
            "mkdir -p {directory} /manifests && mount --bind {directory} /manifests"
        ))?;
        Ok(node)
    }

    /// Loads the images of containers.
    pub(crate) fn load_images(&mut self) -> Result<()> {
        self.run("rubelet image load /images.tar").map(drop)
    }

    pub(crate) fn start_agent(&mut self) -> Result<()> {
        let flags = &self.flags;
        self.start_by(&format!(
            "{AGENT} {flags} >> /run/agent.log 2>&1 & echo $! > /run/agent.pid"
        ))
    }

    /// Starts the agent as systemd does, and waits until it is ready.
    pub(crate) fn start_unit(&mut self) -> Result<()> {
        self.start_by("systemctl start rubelet")
    }

    fn start_by(&mut self, command: &str) -> Result<()> {
        self.run(command)?;
        let watch = self.pods.start();
        self.run(&watch).map(drop)
    }

    /// Kills the agent and starts it again.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.run("kill -9 $(cat /run/agent.pid); while kill -0 $(cat /run/agent.pid); do :; done")?;
        self.start_agent()
    }

    /// Shuts the guest down, and waits until it is off.
    pub(crate) fn power_off(self) -> Result<()> {
        self.vm.power_off(WAIT)
    }

    /// Stops the guest like a power cut.
    pub(crate) fn cut_power(self) {
        self.vm.cut_power();
    }

    pub(crate) fn run(&mut self, command: &str) -> Result<String> {
        self.vm.run(command, COMMAND)
    }

    /// Writes a pod's manifest into the directory.
    pub(crate) fn apply(&mut self, pod: &Value) -> Result<()> {
        let name = pod["metadata"]["name"]
            .as_str()
            .context("a pod has a name")?;
        let text = pod.to_string().replace('\'', "'\\''");
        self.run(&format!(
            "printf %s '{text}' > /manifests/.new && mv /manifests/.new /manifests/{name}.json"
        ))
        .map(drop)
    }

    /// Waits until a pod meets a condition; returns it.
    pub(crate) fn wait(
        &mut self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let full = format!("{name}-guest");
        let waited = wait::until(&format!("pod {name} {what}"), WAIT, || {
            let more = self.vm.streamed(self.pods.read())?;
            self.pods.add(&more)?;
            Ok(self.pods.get(&full).filter(|pod| wanted(pod)).cloned())
        });
        let error = match waited {
            Ok(pod) => return Ok(pod),
            Err(error) => error,
        };
        let log = self.run("tail -n 40 /run/agent.log; cat /run/watch.log")?;
        let last = self.pods.get(&full);
        anyhow::bail!("{error:#}:\n{last:#?}\n{log}")
    }

    /// Waits until a shell command succeeds.
    pub(crate) fn wait_for(&mut self, command: &str) -> Result<()> {
        self.run(&format!(
            "for i in $(seq 300); do {command} && exit 0; sleep 0.2; done
            tail -n 40 /run/agent.log; exit 1"
        ))
        .map(drop)
    }

    /// Removes the pod and waits until the cgroup of its container is gone.
    pub(crate) fn remove(&mut self, name: &str, cgroup: &str) -> Result<()> {
        self.run(&format!("rm /manifests/{name}.json"))?;
        self.wait_for(&format!("[ ! -e {cgroup} ]"))
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
