//! Objects that pods reference, from an API server that may not be available yet.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use rubelet_api::{
    objects::{PodObjects, Token},
    pod::Pod,
};
use rubelet_base::PodUid;
use rubelet_cluster::objects::ClusterObjects;
use rubelet_node_state::{
    host_error::{HostError, HostWarning},
    keyring::PullLogin,
    objects::{
        NoObjects, ObjectRefs, ObjectSource, ServiceAccount, ServiceAccountError, ServiceAccounts,
    },
};
use tokio::sync::watch;

/// Until [`DeferredObjects::set`] there are only pods of manifests, which reference no objects.
#[derive(Default)]
pub(in crate::run) struct DeferredObjects {
    objects: OnceLock<ClusterObjects>,
    early: Mutex<Vec<Arc<Pod>>>,
}

impl DeferredObjects {
    /// Uses these objects from now on.
    pub(super) fn set(&self, objects: ClusterObjects) {
        let mut early = self.early();
        let objects = self.objects.get_or_init(|| objects);
        for pod in early.drain(..) {
            objects.track(&pod);
        }
    }

    /// Writes pending changes to disk.
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
impl ServiceAccounts for DeferredObjects {
    async fn service_account(&self, pod: &Pod) -> Result<ServiceAccount, ServiceAccountError> {
        self.now().service_account(pod).await
    }

    async fn service_account_token(
        &self,
        pod: &Pod,
        uid: &str,
        audience: &str,
    ) -> Result<Token, ServiceAccountError> {
        self.now().service_account_token(pod, uid, audience).await
    }
}

#[async_trait]
impl ObjectSource for DeferredObjects {
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

    async fn objects(&self, pod: &Arc<Pod>, refs: ObjectRefs<'_>) -> Result<PodObjects, HostError> {
        self.now().objects(pod, refs).await
    }

    async fn pull_credentials(
        &self,
        pod: &Arc<Pod>,
        image: &str,
    ) -> (Vec<PullLogin>, Vec<HostWarning>) {
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
