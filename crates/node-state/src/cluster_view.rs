//! What the node knows of its pods that is not on the node itself.

use std::sync::Arc;

use async_trait::async_trait;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::PodUid;
use rubelet_node_plan::{SYSCTL_FORBIDDEN, check_sysctls};

/// Why a pod can't run on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// `status.reason`, such as `OutOfcpu`.
    pub reason: Box<str>,
    /// `status.message`.
    pub message: Box<str>,
}

/// Which pods end for a critical one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// The pods.
    pub victims: Vec<PodUid>,
    /// The resource that the preemption counts under, such as `cpu` or `pods`.
    pub resource: Box<str>,
}

/// Reason of a pod that does not select the node.
pub const NODE_AFFINITY: &str = "NodeAffinity";

/// The cluster as the pod table sees it. Answers come from memory.
#[async_trait]
pub trait ClusterView: Send + Sync + 'static {
    /// Whether a pod that this node never worked on may start, beside the pods that have.
    ///
    /// # Errors
    /// It may not, and fails permanently.
    fn admit(&self, pod: &Pod, others: &[Arc<Pod>]) -> Result<(), Rejection>;

    /// Which of the other pods have to end so that a critical pod may start; `None` where that would
    /// not help it, and it must be rejected.
    fn preempt(&self, _: &Pod, _: &[Arc<Pod>]) -> Option<Preemption> {
        None
    }

    /// Reads the node again, for a moment at most: a label may be newer than the known copy.
    async fn refresh_node(&self) {}

    /// The status that the cluster keeps of a pod; `None` where it keeps none. It replaces a record
    /// that was lost.
    fn published(&self, uid: &PodUid) -> Option<PodStatus>;
}

/// A node without cluster: admits all pods that request nothing forbidden on the node.
#[derive(Debug, Clone, Default)]
pub struct NoCluster {
    /// `allowedUnsafeSysctls`.
    pub allowed_unsafe_sysctls: Vec<String>,
}

impl ClusterView for NoCluster {
    fn admit(&self, pod: &Pod, _: &[Arc<Pod>]) -> Result<(), Rejection> {
        check_sysctls(pod, &self.allowed_unsafe_sysctls).map_err(|error| Rejection {
            reason: SYSCTL_FORBIDDEN.into(),
            message: error.to_string().into(),
        })
    }

    fn published(&self, _: &PodUid) -> Option<PodStatus> {
        None
    }
}
