//! The same through a kubelet with containerd, if `RUBELET_BENCH_KUBELET` is the path of its program:
//! Debian has no package of it.

use std::{
    ffi::OsString,
    fs::File,
    net::Ipv4Addr,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result};
use rubelet_testbed::{Containerd, agent::free_port, wait};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    TIMEOUT,
    client::{self, NodeClient},
    manifest, progress, text, through,
};

const PROGRAM: &str = "RUBELET_BENCH_KUBELET";

/// Measures and prints, only for comparison.
pub(super) fn measure(runtime: &Runtime) -> Result<()> {
    let Some(program) = std::env::var_os(PROGRAM) else {
        return Ok(());
    };
    progress("the same with a kubelet and containerd");
    let containerd = Containerd::start()?;
    let kubelet = Kubelet::start(program, &containerd)?;
    let client = &kubelet.client;
    let hello = || {
        runtime.block_on(async {
            let mut session = client.exec(&["echo", "hello"], false).await?;
            text(&mut session).await
        })
    };
    wait::until("the kubelet's pod runs", TIMEOUT, || {
        Ok(hello().ok().filter(|said| said == "hello\n"))
    })?;
    for (name, value) in runtime.block_on(through(client))? {
        progress(&format!("kubelet: {name} = {value:.2}"));
    }
    drop(kubelet);
    containerd.remove()
}

/// A kubelet without a control plane.
struct Kubelet {
    child: Child,
    client: NodeClient,
}

impl Kubelet {
    fn start(program: OsString, containerd: &Containerd) -> Result<Self> {
        let root = containerd.scratch().subdir("kubelet")?;
        let pods = containerd.scratch().subdir("kubelet-pods")?;
        std::fs::write(pods.join("box.yaml"), manifest())?;
        let (ca, credentials) = client::credentials()?;
        let ca_file = root.join("client-ca.crt");
        std::fs::write(&ca_file, ca)?;
        let port = free_port(Ipv4Addr::LOCALHOST.into())?;
        let config = root.join("config.json");
        std::fs::write(&config, configuration(containerd, &pods, &ca_file, port))?;
        let log = File::create(root.join("log"))?;
        let child = Command::new(program)
            .arg("--config")
            .arg(&config)
            .arg("--root-dir")
            .arg(&root)
            .arg("--cert-dir")
            .arg(root.join("pki"))
            .args(["--hostname-override", "peer"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context(PROGRAM)?;
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let client = NodeClient::new(address, "box-peer".to_owned(), &credentials)?;
        Ok(Self { child, client })
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(containerd: &Containerd, pods: &Path, ca: &Path, port: u16) -> String {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": Ipv4Addr::LOCALHOST,
        "port": port,
        "healthzPort": 0,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": false },
            "x509": { "clientCAFile": ca },
        },
        "authorization": { "mode": "AlwaysAllow" },
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": containerd.scratch().cgroup_root(),
        "cgroupsPerQOS": false,
        "containerRuntimeEndpoint": containerd.endpoint(),
        "enforceNodeAllocatable": [],
        "evictionHard": { "memory.available": "0%" },
        "failCgroupV1": false,
        "failSwapOn": false,
        "resolvConf": "",
        "staticPodPath": pods,
    })
    .to_string()
}
