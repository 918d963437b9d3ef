//! What pods draw from an API server that the agent may not be able to ask yet.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use rubelet_api::{objects::PodObjects, pod::Pod};
use rubelet_base::PodUid;
use rubelet_cluster::objects::ClusterObjects;
use rubelet_kubelet::{
    keyring::PullLogin,
    objects::{Draw, NoObjects, ObjectSource},
    pod_host::{HostError, Note},
};
use tokio::sync::watch;

/// Until [`LateObjects::set`] there are only pods of manifests, which draw nothing.
#[derive(Default)]
pub(in crate::run) struct LateObjects {
    objects: OnceLock<ClusterObjects>,
    early: Mutex<Vec<Arc<Pod>>>,
}

impl LateObjects {
    /// From now on these are asked.
    pub(super) fn set(&self, objects: ClusterObjects) {
        let mut early = self.early();
        let objects = self.objects.get_or_init(|| objects);
        for pod in early.drain(..) {
            objects.track(&pod);
        }
    }

    /// Writes what is not on disk yet.
    pub(in crate::run) async fn flush(&self) {
        if let Some(objects) = self.objects.get() {
            objects.flush().await;
        }
    }

    fn early(&self) -> MutexGuard<'_, Vec<Arc<Pod>>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> &dyn ObjectSource {
        match self.objects.get() {
            Some(objects) => objects,
            None => &NoObjects,
        }
    }
}

#[async_trait]
impl ObjectSource for LateObjects {
    fn track(&self, pod: &Arc<Pod>) {
        let mut early = self.early();
        match self.objects.get() {
            Some(objects) => objects.track(pod),
            None => {
                early.retain(|other| other.uid != pod.uid);
                early.push(Arc::clone(pod));
            }
        }
    }

    fn forget(&self, uid: &PodUid) {
        self.early().retain(|pod| pod.uid != *uid);
        self.now().forget(uid);
    }

    async fn objects(&self, pod: &Arc<Pod>, draw: Draw<'_>) -> Result<PodObjects, HostError> {
        self.now().objects(pod, draw).await
    }

    async fn pull_credentials(&self, pod: &Arc<Pod>, image: &str) -> (Vec<PullLogin>, Vec<Note>) {
        self.now().pull_credentials(pod, image).await
    }

    async fn runtime_handler(&self, class: &str) -> Result<String, HostError> {
        self.now().runtime_handler(class).await
    }

    fn changes(&self, uid: &PodUid) -> watch::Receiver<u64> {
        self.now().changes(uid)
    }

    fn unconfirmed(&self, uid: &PodUid) -> Vec<String> {
        self.now().unconfirmed(uid)
    }
}
