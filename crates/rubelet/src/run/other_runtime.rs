//! Pods that already run in another runtime of this machine: the embedded runtime would run them
//! twice.

use std::{path::Path, time::Duration};

use anyhow::bail;
use rubelet_cri::{RuntimeService, Timeouts, v1};
use rubelet_cri_grpc::CriClient;

/// The sockets of runtimes that a kubelet may have used before.
const SOCKETS: [&str; 2] = ["/run/containerd/containerd.sock", "/run/crio/crio.sock"];

/// Timeout of such a runtime's response.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many pods the message names.
const NAMED: usize = 3;

/// Labels that a kubelet sets on each sandbox.
const LABELS: [&str; 2] = ["io.kubernetes.pod.name", "io.kubernetes.pod.uid"];

/// Rejects a start with the embedded runtime while another one runs pods of a kubelet. A runtime
/// that does not exist or does not respond counts as running none.
///
/// # Errors
/// Such pods run; the message says what to configure.
pub(super) async fn refuse() -> anyhow::Result<()> {
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
