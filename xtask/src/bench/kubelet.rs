//! A kubelet without a control plane, on a containerd of its own, to compare with. Its program is the one that
//! `RUBELET_BENCH_KUBELET` names: Debian has no package of it.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result};
use rubelet_testbed::{Containerd, agent::free_port};
use serde_json::{Value, json};

const PROGRAM: &str = "RUBELET_BENCH_KUBELET";

/// The name of the node.
pub(super) const NODE: &str = "peer";

/// The path of the kubelet's program, if one is to be compared with.
pub(super) fn program() -> Option<OsString> {
    std::env::var_os(PROGRAM)
}

/// A kubelet that runs. It is killed when this is dropped.
pub(super) struct Kubelet {
    child: Child,
    manifests: PathBuf,
    /// Where it serves with TLS.
    pub(super) address: SocketAddr,
    /// Its port for everyone.
    pub(super) read_only_port: u16,
}

impl Kubelet {
    /// Starts it with these manifests, by their file names. Clients with a certificate of this CA have all
    /// permissions.
    pub(super) fn start(
        program: &OsString,
        containerd: &Containerd,
        manifests: impl IntoIterator<Item = (String, String)>,
        client_ca: Option<&str>,
    ) -> Result<Self> {
        let root = containerd.scratch().subdir("kubelet")?;
        let pods = containerd.scratch().subdir("kubelet-pods")?;
        for (name, manifest) in manifests {
            fs::write(pods.join(name), manifest)?;
        }
        let port = free_port(Ipv4Addr::LOCALHOST.into())?;
        let read_only_port = free_port(Ipv4Addr::LOCALHOST.into())?;
        let mut settings = configuration(containerd, &pods);
        if let Some(ca) = client_ca {
            let file = root.join("client-ca.crt");
            fs::write(&file, ca)?;
            settings["authentication"]["x509"] = json!({ "clientCAFile": file });
        }
        settings["port"] = port.into();
        settings["readOnlyPort"] = read_only_port.into();
        let config = root.join("config.json");
        fs::write(&config, settings.to_string())?;
        let log = File::create(root.join("log"))?;
        let child = Command::new(program)
            .arg("--config")
            .arg(&config)
            .arg("--root-dir")
            .arg(&root)
            .arg("--cert-dir")
            .arg(root.join("pki"))
            // Where it reads statistics of containers.
            .arg("--containerd")
            .arg(containerd.socket())
            .args(["--hostname-override", NODE])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context(PROGRAM)?;
        Ok(Self {
            child,
            manifests: pods,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            read_only_port,
        })
    }

    /// Its process ID.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Removes a manifest.
    pub(super) fn remove_manifest(&self, name: &str) -> Result<()> {
        Ok(fs::remove_file(self.manifests.join(name))?)
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(containerd: &Containerd, pods: &Path) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": Ipv4Addr::LOCALHOST,
        "healthzPort": 0,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": false },
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
}
