//! Decides which pods may start on this node.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use rubelet_api::{pod::Pod, status::PodStatus, wire::status_from_json};
use rubelet_base::PodUid;
use rubelet_node_plan::admission::Rejection;
use rubelet_node_state::cluster_view::{ClusterView, Preemption};

use super::ApiPods;

/// Checks whether the node admits a pod beside others.
pub type AdmitFn = Box<dyn Fn(&Pod, &[Arc<Pod>]) -> Result<(), Rejection> + Send + Sync + 'static>;

/// Selects the pods to preempt so that a critical pod fits.
pub type PreemptFn = Box<dyn Fn(&Pod, &[Arc<Pod>]) -> Option<Preemption> + Send + Sync + 'static>;

/// Reads the node again.
pub type RefreshFn = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static>;

/// Admission of pods, by the API server's last list and by the node.
pub struct AdmissionGate {
    api: Arc<ApiPods>,
    admission: AdmitFn,
    preempt: Option<PreemptFn>,
    refresh: Option<RefreshFn>,
    /// Pods that request what this node does not support, whatever else runs.
    rejected: Mutex<BTreeMap<PodUid, Rejection>>,
}

impl AdmissionGate {
    /// A gate that has admitted no pod yet.
    #[must_use]
    pub fn new(api: Arc<ApiPods>, admission: AdmitFn) -> Self {
        Self {
            api,
            admission,
            preempt: None,
            refresh: None,
            rejected: Mutex::default(),
        }
    }

    /// The same with a way to make room for critical pods.
    #[must_use]
    pub fn with_preemption(self, preempt: PreemptFn) -> Self {
        Self {
            preempt: Some(preempt),
            ..self
        }
    }

    /// The same with a way to read the node again.
    #[must_use]
    pub fn with_refresh(self, refresh: RefreshFn) -> Self {
        Self {
            refresh: Some(refresh),
            ..self
        }
    }

    /// Notes the result for the pod's own definition.
    pub(super) fn set_rejection(&self, uid: &PodUid, rejection: Option<Rejection>) {
        match rejection {
            Some(rejection) => self.lock().insert(uid.clone(), rejection),
            None => self.lock().remove(uid),
        };
    }

    pub(super) fn forget(&self, uid: &PodUid) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PodUid, Rejection>> {
        self.rejected.lock()
    }
}

#[async_trait]
impl ClusterView for AdmissionGate {
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

    fn preempt(&self, pod: &Pod, others: &[Arc<Pod>]) -> Option<Preemption> {
        if self.lock().contains_key(&pod.uid) {
            return None;
        }
        self.preempt.as_ref()?(pod, others)
    }

    fn mirrors(&self) -> bool {
        true
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
