//! Pods that already run in another runtime of this machine: they would run twice.

mod living;

use std::path::Path;

use anyhow::{Context as _, bail};
use rubelet_base::cgroup::CgroupPath;
use rubelet_config::Resolved;
use rubelet_host::CgroupFs;
use rubelet_node_plan::{CgroupDriver, CgroupRoot, CgroupTree};
use tokio::task::spawn_blocking;
use tracing::warn;

use self::living::Supervisor;

/// Rejects a start with the embedded runtime while another one runs pods of this node, whether its
/// daemon responds or not. Pods below another `cgroupRoot` are another node's.
///
/// # Errors
/// Such pods run; the message says what to configure.
pub(super) async fn refuse(resolved: &Resolved, cgroups: &CgroupFs) -> anyhow::Result<()> {
    match living(&resolved.config.cgroup_root, cgroups).await? {
        Some((supervisor, process)) => bail!(supervised(&supervisor, process)),
        None => Ok(()),
    }
}

/// Warns when the runtime is served by itself while another one runs pods of this node: only the
/// caller knows whether they are its own.
pub(super) async fn warn_of_living(resolved: &Resolved, cgroups: &CgroupFs) {
    match living(&resolved.config.cgroup_root, cgroups).await {
        Ok(Some((supervisor, process))) => warn!(
            process,
            "Pods run in {supervisor} on this machine. A kubelet that ran them and now uses this \
             runtime would run them twice: remove them first with crictl rmp -fa"
        ),
        Ok(None) => {}
        Err(error) => warn!(error = %error, "Other runtimes' pods cannot be looked for"),
    }
}

/// A supervisor of pods below this root, and its process.
async fn living(root: &str, cgroups: &CgroupFs) -> anyhow::Result<Option<(Supervisor, i32)>> {
    let (roots, cgroups) = (kubepods(root)?, cgroups.clone());
    let found = spawn_blocking(move || living::supervisors(&cgroups, &roots)).await?;
    Ok(found.into_iter().next())
}

/// Rejects a start with another runtime while pods of the embedded one go on that nobody serves.
///
/// # Errors
/// Such pods run; the message says what to configure.
pub(super) async fn refuse_unattended(resolved: &Resolved) -> anyhow::Result<()> {
    let run = resolved.rubelet.runtime.run_dir.clone();
    let counted = spawn_blocking(move || rubelet_runtime::unattended_pods(Path::new(&run))).await?;
    let endpoint = &resolved.config.container_runtime_endpoint;
    match counted {
        0 => Ok(()),
        count => bail!(unattended(count, endpoint)),
    }
}

/// The cgroups of this node's pods, as either driver names them.
fn kubepods(root: &str) -> anyhow::Result<Vec<CgroupPath>> {
    let root = CgroupRoot::parse(root).context("cgroupRoot")?;
    let drivers = [CgroupDriver::Cgroupfs, CgroupDriver::Systemd];
    let trees = drivers.map(|driver| CgroupTree::new(&root, driver));
    let paths = trees.into_iter().map(|tree| Ok(tree?.kubepods().clone()));
    paths.collect()
}

fn supervised(supervisor: &Supervisor, process: i32) -> String {
    let keep = match supervisor.endpoint() {
        Some(endpoint) => format!("write containerRuntimeEndpoint: {endpoint}"),
        None => "write its socket as containerRuntimeEndpoint".to_owned(),
    };
    format!(
        "pods run in {supervisor} on this machine (its process {process} supervises them); with the \
         runtime inside they would run twice. To keep that runtime {keep}; else remove its pods first \
         with crictl rmp -fa"
    )
}

fn unattended(count: usize, endpoint: &str) -> String {
    format!(
        "{count} pods of the runtime inside run on this machine, and no agent serves them; in the \
         container runtime at {endpoint} they would run twice. To keep them write \
         containerRuntimeEndpoint: embedded; else start `rubelet runtime serve` and remove them with \
         crictl rmp -fa on its socket first"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_write() {
        let shim = Supervisor::Containerd {
            address: "/run/k3s/containerd/containerd.sock".to_owned(),
            namespace: "k8s.io".to_owned(),
        };
        let why = supervised(&shim, 77);
        assert!(why.contains("(its process 77 supervises them)"), "{why}");
        let wanted = "write containerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock;";
        assert!(why.contains(wanted), "{why}");
        let why = unattended(3, "unix:///run/crio/crio.sock");
        assert!(why.starts_with("3 pods of the runtime inside run"), "{why}");
        assert!(
            why.contains("write containerRuntimeEndpoint: embedded;"),
            "{why}"
        );
        let paths = kubepods("/a").unwrap();
        let paths: Vec<_> = paths.iter().map(CgroupPath::as_str).collect();
        assert_eq!(paths, ["/a/kubepods", "/a.slice/a-kubepods.slice"]);
    }
}
