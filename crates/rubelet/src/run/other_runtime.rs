//! Pods that already run in another runtime of this machine: they would run twice.

mod living;

use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use rubelet_base::PodUid;
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_config::Resolved;
use rubelet_cri::{CriResult, RuntimeService as _, Timeouts, v1};
use rubelet_cri_grpc::CriClient;
use rubelet_host::CgroupFs;
use rubelet_node_plan::{CgroupRoot, CgroupTree};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::warn;

use self::living::Supervised;

/// Time between two requests to a runtime that does not respond, or that does not know a pod.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Consecutive lists of a runtime that must miss a running pod: it may be removing it.
const UNKNOWN: u32 = 3;

/// Rejects a start with the embedded runtime while another one runs pods of this node, whether its
/// daemon responds or not. Pods below another `cgroupRoot` are another node's.
///
/// # Errors
/// Such pods run; the message says what to configure.
pub(super) async fn refuse(resolved: &Resolved, cgroups: &CgroupFs) -> anyhow::Result<()> {
    match living(&resolved.config.cgroup_root, cgroups).await?.first() {
        Some(found) => bail!(supervised(found, "the embedded runtime")),
        None => Ok(()),
    }
}

/// Rejects a start with a runtime that is not embedded while another one runs pods of this node. Waits
/// while the runtime must say whether pods that live are its own, and does not respond.
///
/// # Errors
/// Such pods run; the message says what to configure.
pub(super) async fn wait_until_known(
    resolved: &Resolved,
    cgroups: &CgroupFs,
) -> anyhow::Result<()> {
    let endpoint = &resolved.config.container_runtime_endpoint;
    if endpoint.is_empty() {
        return Ok(());
    }
    let timeouts = Timeouts {
        request: resolved.config.runtime_request_timeout,
    };
    let runtime = CriClient::connect_lazy(endpoint, timeouts)
        .map_err(|error| anyhow!("containerRuntimeEndpoint: {error}"))?;
    let (mut waits, mut unknown) = (false, 0);
    loop {
        let living = living(&resolved.config.cgroup_root, cgroups).await?;
        let others = living
            .iter()
            .filter(|one| !one.supervisor.is_of(runtime.socket()));
        let Some(first) = others.clone().next() else {
            return Ok(());
        };
        match known(&runtime).await {
            Ok(known) => {
                let Some(foreign) = others.clone().find(|one| !known.has(one)) else {
                    return Ok(());
                };
                unknown += 1;
                if unknown == UNKNOWN {
                    bail!(supervised(
                        foreign,
                        &format!("the container runtime at {endpoint}")
                    ));
                }
            }
            Err(error) => {
                unknown = 0;
                if !std::mem::replace(&mut waits, true) {
                    warn!(
                        process = first.process,
                        error = %error,
                        "Pods run in {} on this machine, and the container runtime at {endpoint} does not \
                         say whether they are its own: waiting for it, because otherwise they would run twice",
                        first.supervisor,
                    );
                }
            }
        }
        sleep(ASK_AGAIN).await;
    }
}

/// What a runtime has.
#[derive(Debug, Default)]
struct RuntimeObjects {
    /// Identifiers of its sandboxes and containers.
    ids: HashSet<String>,
    /// Pods whose sandboxes are ready.
    pods: HashSet<PodUid>,
}

impl RuntimeObjects {
    fn of(sandboxes: Vec<v1::PodSandbox>, containers: Vec<v1::Container>) -> Self {
        let ready = i32::from(v1::PodSandboxState::SandboxReady);
        let ready = sandboxes.iter().filter(|sandbox| sandbox.state == ready);
        let pods = ready.filter_map(|sandbox| sandbox.metadata.as_ref());
        let pods = pods.map(|metadata| PodUid::from(metadata.uid.clone()));
        let pods = pods.collect();
        let sandboxes = sandboxes.into_iter().map(|sandbox| sandbox.id);
        let containers = containers.into_iter().map(|container| container.id);
        let ids = sandboxes.chain(containers).collect();
        Self { ids, pods }
    }

    /// Whether the runtime has what is supervised. CRI-O lists no container before it is created, and keeps one that its
    /// caller no longer waits for: then the sandbox shows whose it is.
    fn has(&self, one: &Supervised) -> bool {
        one.id.as_ref().is_some_and(|id| self.ids.contains(id))
            || one.pod.as_ref().is_some_and(|pod| self.pods.contains(pod))
    }
}

async fn known(runtime: &CriClient) -> CriResult<RuntimeObjects> {
    let sandboxes = runtime.list_pod_sandbox(v1::ListPodSandboxRequest::default());
    let sandboxes = sandboxes.await?.items;
    let containers = runtime.list_containers(v1::ListContainersRequest::default());
    Ok(RuntimeObjects::of(sandboxes, containers.await?.containers))
}

/// Warns when the runtime is served by itself while another one runs pods of this node: only the
/// caller knows whether they are its own.
pub(super) async fn warn_of_living(resolved: &Resolved, cgroups: &CgroupFs) {
    match living(&resolved.config.cgroup_root, cgroups).await {
        Ok(living) => {
            if let Some(Supervised {
                supervisor,
                process,
                ..
            }) = living.first()
            {
                warn!(
                    process,
                    "Pods run in {supervisor} on this machine. A kubelet that ran them and now uses this \
                     runtime would run them twice: remove them first with crictl rmp -fa"
                );
            }
        }
        Err(error) => warn!(error = %error, "Cannot check for pods of other runtimes"),
    }
}

/// The supervisors of pods below this root.
async fn living(root: &str, cgroups: &CgroupFs) -> anyhow::Result<BTreeSet<Supervised>> {
    let (trees, cgroups) = (trees(root)?, cgroups.clone());
    Ok(spawn_blocking(move || living::supervisors(&cgroups, &trees)).await?)
}

/// Rejects a start with another runtime while pods of the embedded one still run, which no agent
/// would serve.
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
fn trees(root: &str) -> anyhow::Result<Vec<CgroupTree>> {
    let root = CgroupRoot::parse(root).context("cgroupRoot")?;
    let drivers = [CgroupDriver::Cgroupfs, CgroupDriver::Systemd];
    let trees = drivers.map(|driver| CgroupTree::new(&root, driver));
    Ok(trees.into_iter().collect::<Result<_, _>>()?)
}

/// Why a start with `other` is rejected.
fn supervised(found: &Supervised, other: &str) -> String {
    let Supervised {
        supervisor,
        process,
        ..
    } = found;
    let keep = match supervisor.endpoint() {
        Some(endpoint) => format!("write containerRuntimeEndpoint: {endpoint}"),
        None => "write its socket as containerRuntimeEndpoint".to_owned(),
    };
    format!(
        "pods run in {supervisor} on this machine (its process {process} supervises them); with {other} \
         they would run twice. To keep that runtime {keep}; else remove its pods first with crictl rmp -fa"
    )
}

fn unattended(count: usize, endpoint: &str) -> String {
    format!(
        "{count} pods of the embedded runtime run on this machine, and no agent serves them; in the \
         container runtime at {endpoint} they would run twice. To keep them write \
         containerRuntimeEndpoint: embedded; else start `rubelet runtime serve` and remove them with \
         crictl rmp -fa on its socket first"
    )
}

#[cfg(test)]
mod tests {
    use super::{living::Supervisor, *};

    #[test]
    fn a_refusal_says_what_to_write() {
        let shim = Supervised {
            supervisor: Supervisor::Containerd {
                address: "/run/k3s/containerd/containerd.sock".to_owned(),
                namespace: "k8s.io".to_owned(),
            },
            id: None,
            pod: None,
            process: 77,
        };
        let why = supervised(&shim, "the embedded runtime");
        assert!(why.contains("(its process 77 supervises them)"), "{why}");
        let wanted = "write containerRuntimeEndpoint: unix:///run/k3s/containerd/containerd.sock;";
        assert!(why.contains(wanted), "{why}");
        let why = unattended(3, "unix:///run/crio/crio.sock");
        assert!(
            why.starts_with("3 pods of the embedded runtime run"),
            "{why}"
        );
        assert!(
            why.contains("write containerRuntimeEndpoint: embedded;"),
            "{why}"
        );
        let trees = trees("/a").unwrap();
        let paths: Vec<_> = trees.iter().map(|tree| tree.kubepods().as_str()).collect();
        assert_eq!(paths, ["/a/kubepods", "/a.slice/a-kubepods.slice"]);
    }

    #[test]
    fn a_runtime_has_what_it_lists_and_what_it_creates_in_a_ready_sandbox() {
        let sandbox = |id: &str, uid: &str, state| v1::PodSandbox {
            id: id.to_owned(),
            metadata: Some(v1::PodSandboxMetadata {
                uid: uid.to_owned(),
                ..Default::default()
            }),
            state: i32::from(state),
            ..Default::default()
        };
        let known = RuntimeObjects::of(
            vec![
                sandbox("s1", "runs", v1::PodSandboxState::SandboxReady),
                sandbox("s2", "ran", v1::PodSandboxState::SandboxNotready),
            ],
            vec![v1::Container {
                id: "c1".to_owned(),
                ..Default::default()
            }],
        );
        for (id, pod, expected) in [
            (Some("s2"), None, true),
            (Some("c1"), Some("ran"), true),
            (Some("created"), Some("runs"), true),
            (None, Some("runs"), true),
            // Another runtime may run what this one ran before.
            (Some("foreign"), Some("ran"), false),
            (Some("foreign"), Some("other"), false),
            (None, None, false),
        ] {
            let one = Supervised {
                supervisor: Supervisor::Conmon,
                id: id.map(str::to_owned),
                pod: pod.map(PodUid::from),
                process: 1,
            };
            assert_eq!(known.has(&one), expected, "{id:?} {pod:?}");
        }
    }
}
