//! The node as other parts of the agent see it.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use rubelet_node_plan::{
    admission::AdmissionNode,
    eviction::Pressure,
    node_status::{
        conditions::TRUE,
        object::{Node, NodeAddress},
    },
};
use tokio::sync::watch;

use super::observed_node::ObservedNode;

/// The part of the node object that other tasks use.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeView {
    /// `metadata.uid`; empty for a node that is not registered.
    pub uid: Box<str>,
    /// The node as pod admission sees it.
    pub admission: AdmissionNode,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<Box<str>>,
    /// `status.addresses`.
    pub addresses: Vec<NodeAddress>,
    /// TTL of a config map or secret that was read, where they are not watched:
    /// the annotation `node.alpha.kubernetes.io/ttl`, in seconds. The cluster's controllers set it
    /// by the number of nodes.
    pub object_ttl: Option<Duration>,
}

const OBJECT_TTL: &str = "node.alpha.kubernetes.io/ttl";

/// Input of admission beside the node object.
#[derive(Debug, Clone, Default)]
pub(super) struct LocalNode {
    pub(super) apparmor: bool,
    pub(super) allowed_unsafe_sysctls: Arc<[String]>,
}

impl NodeView {
    pub(super) fn new(node: &Node, local: &LocalNode) -> Self {
        let holds = |kind: &str| {
            let condition = node.status.condition(kind);
            condition.is_some_and(|condition| *condition.status == *TRUE)
        };
        Self {
            uid: node.metadata.uid.clone(),
            admission: AdmissionNode {
                pressure: Pressure {
                    memory: holds("MemoryPressure"),
                    disk: holds("DiskPressure"),
                    pid: holds("PIDPressure"),
                },
                apparmor: local.apparmor,
                allowed_unsafe_sysctls: Arc::clone(&local.allowed_unsafe_sysctls),
                ..AdmissionNode::from_node(node)
            },
            unschedulable: node.spec.unschedulable,
            pod_cidrs: node.spec.pod_cidrs.clone(),
            addresses: node.status.addresses.clone(),
            object_ttl: node
                .metadata
                .annotations
                .get(OBJECT_TTL)
                .and_then(|text| text.parse().ok())
                .map(Duration::from_secs),
        }
    }
}

/// Shows the node to others, each time something of interest to them changed.
pub(super) async fn show(
    mut seen: watch::Receiver<ObservedNode>,
    out: watch::Sender<Option<Arc<NodeView>>>,
    local: LocalNode,
) -> Infallible {
    loop {
        let node = seen.borrow_and_update().node.clone();
        let view = node.map(|node| NodeView::new(&node, &local));
        out.send_if_modified(|old| {
            let changed = old.as_deref() != view.as_ref();
            if changed {
                *old = view.map(Arc::new);
            }
            changed
        });
        if seen.changed().await.is_err() {
            // The agent stops.
            return pending().await;
        }
    }
}
