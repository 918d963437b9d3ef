//! The view of the pod table on the cluster.

use std::sync::Arc;

use async_trait::async_trait;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::PodUid;
use rubelet_node_plan::{SYSCTL_FORBIDDEN, admission::Rejection, check_sysctls};

/// The pods to preempt for a critical pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// The preempted pods.
    pub victims: Vec<PodUid>,
    /// The resource in the preemption metric, such as `cpu` or `pods`.
    pub resource: Box<str>,
}

/// Reason of a pod that does not select the node.
pub const NODE_AFFINITY: &str = "NodeAffinity";

/// The cluster as the pod table sees it. Implementations respond from memory.
#[async_trait]
pub trait ClusterView: Send + Sync + 'static {
    /// Decides whether a pod that is new to this node may start beside the `others`.
    ///
    /// # Errors
    /// The pod is rejected and fails permanently.
    fn admit(&self, pod: &Pod, others: &[Arc<Pod>]) -> Result<(), Rejection>;

    /// The pods to preempt so that a critical pod may start; `None` if preemption would not help
    /// and the pod must be rejected.
    fn preempt(&self, _: &Pod, _: &[Arc<Pod>]) -> Option<Preemption> {
        None
    }

    /// Refreshes the node object within a short timeout: a label may be newer than the cached copy.
    async fn refresh_node(&self) {}

    /// Whether pods of manifests are shown in the API server.
    fn mirrors(&self) -> bool {
        false
    }

    /// The status of a pod in the API server, if there is one. It replaces a lost record.
    fn published(&self, uid: &PodUid) -> Option<PodStatus>;
}

/// A standalone node: admits all pods except those with forbidden sysctls.
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
