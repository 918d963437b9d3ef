//! Pods that already run in another runtime of this machine: they would run twice.

mod living;

use std::{path::Path, time::Duration};

use anyhow::{Context as _, bail};
use rubelet_base::cgroup::CgroupPath;
use rubelet_config::Resolved;
use rubelet_cri::{RuntimeService, Timeouts, v1};
use rubelet_cri_grpc::CriClient;
use rubelet_host::CgroupFs;
use rubelet_node_plan::{CgroupDriver, CgroupRoot, CgroupTree};
use tokio::task::spawn_blocking;

use self::living::Supervisor;

/// The sockets of runtimes that a kubelet may have used before.
const SOCKETS: [&str; 2] = ["/run/containerd/containerd.sock", "/run/crio/crio.sock"];

/// Timeout of such a runtime's response.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many pods the message names.
const NAMED: usize = 3;

/// Labels that a kubelet sets on each sandbox.
const LABELS: [&str; 2] = ["io.kubernetes.pod.name", "io.kubernetes.pod.uid"];

/// Rejects a start with the embedded runtime while another one runs pods of a kubelet: by what the
/// processes in the cgroups of pods are supervised by, whether its daemon responds or not, and by
/// what a daemon says, whose pods may be in other cgroups.
///
/// # Errors
/// Such pods run; the message says what to configure.
pub(super) async fn refuse(resolved: &Resolved, cgroups: &CgroupFs) -> anyhow::Result<()> {
    let (roots, cgroups) = (kubepods(&resolved.config.cgroup_root)?, cgroups.clone());
    let found = spawn_blocking(move || living::supervisors(&cgroups, &roots)).await?;
    if let Some((supervisor, process)) = found.into_iter().next() {
        bail!(supervised(&supervisor, process));
    }
    for socket in SOCKETS {
        if !Path::new(socket).exists() {
            continue;
        }
        let endpoint = format!("unix://{socket}");
        if let Some(why) = refusal(&endpoint, &ready_sandboxes(&endpoint).await) {
            bail!(why);
        }
    }
    Ok(())
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

async fn ready_sandboxes(endpoint: &str) -> Vec<v1::PodSandbox> {
    let timeouts = Timeouts { request: PATIENCE };
    let Ok(client) = CriClient::connect_lazy(endpoint, timeouts) else {
        return Vec::new();
    };
    let ready = v1::PodSandboxStateValue {
        state: v1::PodSandboxState::SandboxReady.into(),
    };
    let request = v1::ListPodSandboxRequest {
        filter: Some(v1::PodSandboxFilter {
            state: Some(ready),
            ..v1::PodSandboxFilter::default()
        }),
    };
    let listed = tokio::time::timeout(PATIENCE, client.list_pod_sandbox(request)).await;
    match listed {
        Ok(Ok(answer)) => answer.items,
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

/// Why the embedded runtime can't be used beside these sandboxes.
fn refusal(endpoint: &str, sandboxes: &[v1::PodSandbox]) -> Option<String> {
    let of_kubelets = sandboxes.iter().filter(|sandbox| {
        let ready = sandbox.state == i32::from(v1::PodSandboxState::SandboxReady);
        ready
            && LABELS
                .iter()
                .all(|label| sandbox.labels.contains_key(*label))
    });
    let names: Vec<String> = of_kubelets
        .filter_map(|sandbox| sandbox.metadata.as_ref())
        .map(|pod| format!("{}/{}", pod.namespace, pod.name))
        .collect();
    if names.is_empty() {
        return None;
    }
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = names[..names.len().min(NAMED)].join(", ");
    Some(format!(
        "{} pods run in the container runtime at {endpoint}: {shown}{more}; with the runtime inside they \
         would run twice. To keep that runtime write containerRuntimeEndpoint: {endpoint}; else remove its \
         pods first with crictl rmp -fa",
        names.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(name: &str, state: v1::PodSandboxState, kubelets: bool) -> v1::PodSandbox {
        let labels = LABELS.map(|label| (label.to_owned(), "x".to_owned()));
        v1::PodSandbox {
            metadata: Some(v1::PodSandboxMetadata {
                name: name.to_owned(),
                namespace: "ns".to_owned(),
                ..v1::PodSandboxMetadata::default()
            }),
            state: state.into(),
            labels: labels.into_iter().filter(|_| kubelets).collect(),
            ..v1::PodSandbox::default()
        }
    }

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

    #[test]
    fn pods_of_a_kubelet_in_another_runtime_refuse_the_runtime_inside() {
        let (ready, not) = (
            v1::PodSandboxState::SandboxReady,
            v1::PodSandboxState::SandboxNotready,
        );
        let endpoint = "unix:///run/containerd/containerd.sock";
        assert_eq!(refusal(endpoint, &[]), None);
        assert_eq!(refusal(endpoint, &[sandbox("old", not, true)]), None);
        assert_eq!(refusal(endpoint, &[sandbox("by-hand", ready, false)]), None);
        let why = refusal(endpoint, &[sandbox("web", ready, true)]).unwrap();
        assert!(
            why.starts_with("1 pods run in") && why.contains(": ns/web;"),
            "{why}"
        );
        assert!(
            why.contains("write containerRuntimeEndpoint: unix:///run/containerd/containerd.sock")
        );
        let many: Vec<_> = (0..5)
            .map(|n| sandbox(&format!("p{n}"), ready, true))
            .collect();
        let why = refusal(endpoint, &many).unwrap();
        assert!(why.contains(": ns/p0, ns/p1, ns/p2 and 2 more;"), "{why}");
    }
}
