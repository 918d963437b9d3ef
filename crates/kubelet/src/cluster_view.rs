//! What the node knows of its pods that is not on the node itself.

use std::sync::Arc;

use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::PodUid;

/// Why a pod can't run on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// `status.reason`, such as `OutOfcpu`.
    pub reason: Box<str>,
    /// `status.message`.
    pub message: Box<str>,
}

/// The cluster as the pod table sees it. Answers come from memory.
pub trait ClusterView: Send + Sync + 'static {
    /// Whether a pod that this node never worked on may start, beside the pods that have.
    ///
    /// # Errors
    /// It may not; it fails for good.
    fn admit(&self, pod: &Pod, others: &[Arc<Pod>]) -> Result<(), Rejection>;

    /// The status that the cluster keeps of a pod; `None` where it keeps none. It stands in for a
    /// record that was lost.
    fn published(&self, uid: &PodUid) -> Option<PodStatus>;
}

/// A node without cluster: all pods are welcome.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCluster;

impl ClusterView for NoCluster {
    fn admit(&self, _: &Pod, _: &[Arc<Pod>]) -> Result<(), Rejection> {
        Ok(())
    }

    fn published(&self, _: &PodUid) -> Option<PodStatus> {
        None
    }
}
