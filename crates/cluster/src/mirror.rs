//! Mirror pods: they show the static pods of this node to the cluster (kubelet: `pkg/kubelet/pod`,
//! `tryReconcileMirrorPods`).
//!
//! Each pod of a manifest gets a pod at the API server with the same name and specification, the
//! annotation `kubernetes.io/config.mirror` and the Node as its owner. `decide` compares the
//! sources' pods with those of the API server; the task makes the calls and waits for the watch to
//! report them. Statuses are written by [`crate::status`].
//!
//! The annotation's value is `kubernetes.io/config.hash`, in which an edit of the manifest shows. Where
//! an edit replaces the static pod, the mirror pod stays and shows how that ends, and a new one is
//! created when its successor starts.

mod body;
mod decide;
mod send;
mod task;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rubelet_kube::Client;
use rubelet_node_state::pod_board::PodBoard;
use rubelet_sources::desired::Desired;
use tokio::sync::watch;

use crate::source::ApiPods;

/// Dependencies of the task.
pub struct MirrorParts {
    /// The API server.
    pub client: Client,
    /// Name of this node.
    pub node_name: Arc<str>,
    /// UID of the Node object; `None` until it is registered. Without it there are no new mirror
    /// pods, because they need an owner.
    pub node_uid: watch::Receiver<Option<Arc<str>>>,
    /// The pods that manifests define.
    pub desired: watch::Receiver<Arc<Desired>>,
    /// Pods of the API server. Which mirror pods exist is unknown until they were listed.
    pub listed: watch::Receiver<Arc<Desired>>,
    /// The running pods.
    pub board: Arc<PodBoard>,
    /// The pods of the API server.
    pub api: Arc<ApiPods>,
}

/// Keeps mirror pods, forever.
pub async fn run(parts: MirrorParts) {
    let MirrorParts {
        client,
        node_name,
        node_uid,
        desired,
        listed,
        board,
        api,
    } = parts;
    let node = task::OwnerNode {
        name: node_name,
        uid: node_uid,
    };
    let wanted = task::MirrorSources { desired, listed };
    task::MirrorTask::new(client, node, wanted, board, api)
        .run()
        .await;
}
