//! Which pods may start on this node.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use rubelet_api::{pod::Pod, status::PodStatus, wire::status_from_json};
use rubelet_base::PodUid;
use rubelet_kubelet::cluster_view::{ClusterView, Rejection};

use super::ApiPods;

/// Whether there is room for a pod beside others, as the node is now.
pub type Admission =
    Box<dyn Fn(&Pod, &[Arc<Pod>]) -> Result<(), Rejection> + Send + Sync + 'static>;

/// Which of the others would have to end so that a critical pod fits.
pub type Preemption = Box<dyn Fn(&Pod, &[Arc<Pod>]) -> Option<Vec<PodUid>> + Send + Sync + 'static>;

/// Reads the node once more.
pub type Refresh = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static>;

/// What the API server and the node say of a pod before it starts.
pub struct Gate {
    api: Arc<ApiPods>,
    admission: Admission,
    preemption: Option<Preemption>,
    refresh: Option<Refresh>,
    /// Pods that ask for what this node can't do, whatever else runs.
    rejected: Mutex<BTreeMap<PodUid, Rejection>>,
}

impl Gate {
    /// A gate that nobody has passed.
    #[must_use]
    pub fn new(api: Arc<ApiPods>, admission: Admission) -> Self {
        Self {
            api,
            admission,
            preemption: None,
            refresh: None,
            rejected: Mutex::default(),
        }
    }

    /// The same with a way to make room for critical pods.
    #[must_use]
    pub fn with_preemption(self, preemption: Preemption) -> Self {
        Self {
            preemption: Some(preemption),
            ..self
        }
    }

    /// The same with a way to read the node once more.
    #[must_use]
    pub fn with_refresh(self, refresh: Refresh) -> Self {
        Self {
            refresh: Some(refresh),
            ..self
        }
    }

    /// Notes what the pod's own definition says.
    pub(super) fn judge(&self, uid: &PodUid, rejection: Option<Rejection>) {
        match rejection {
            Some(rejection) => self.lock().insert(uid.clone(), rejection),
            None => self.lock().remove(uid),
        };
    }

    pub(super) fn forget(&self, uid: &PodUid) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PodUid, Rejection>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ClusterView for Gate {
    async fn refresh_node(&self) {
        if let Some(refresh) = &self.refresh {
            refresh().await;
        }
    }

    fn admit(&self, pod: &Pod, others: &[Arc<Pod>]) -> Result<(), Rejection> {
        if let Some(rejection) = self.lock().get(&pod.uid) {
            return Err(rejection.clone());
        }
        (self.admission)(pod, others)
    }

    fn preempt(&self, pod: &Pod, others: &[Arc<Pod>]) -> Option<Vec<PodUid>> {
        if self.lock().contains_key(&pod.uid) {
            return None;
        }
        self.preemption.as_ref()?(pod, others)
    }

    fn published(&self, uid: &PodUid) -> Option<PodStatus> {
        let known = self.api.get(uid)?;
        let status = serde_json::from_str(&known.status).ok()?;
        // What was written by a scheduler or an API server alone is no memory of this node.
        status_from_json(&status).filter(|status| {
            status.phase != rubelet_api::status::Phase::Pending || !status.containers.is_empty()
        })
    }
}
