//! Measures pods one after the other. One whose files do not respond keeps the others waiting once.

use std::{collections::HashMap, sync::Arc, time::Duration};

use rubelet_api::pod::Pod;
use rubelet_base::PodUid;
use rubelet_cri::RuntimeService;
use rubelet_node_plan::eviction::{PodUsage, StarvedResource};
use tokio::{
    task::{JoinHandle, spawn},
    time::timeout,
};
use tracing::warn;

use crate::eviction::{PodUsageSource, usage};

/// Longest wait for the numbers of a pod.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures the local storage of pods.
pub(super) struct StorageMeter {
    pods: Arc<dyn PodUsageSource>,
    runtime: Arc<dyn RuntimeService>,
    /// Measurements that take long.
    running: HashMap<PodUid, JoinHandle<Option<PodUsage>>>,
}

impl StorageMeter {
    pub(super) fn new(pods: Arc<dyn PodUsageSource>, runtime: Arc<dyn RuntimeService>) -> Self {
        Self {
            pods,
            runtime,
            running: HashMap::new(),
        }
    }

    /// How long a measurement of the pod takes that has not ended, at least.
    pub(super) fn delay(&self, uid: &PodUid) -> Duration {
        match self.running.contains_key(uid) {
            true => PATIENCE,
            false => Duration::ZERO,
        }
    }

    /// The usage of a pod; `None` if it can't be measured now.
    pub(super) async fn measure(&mut self, pod: &Arc<Pod>) -> Option<PodUsage> {
        self.running.retain(|_, running| !running.is_finished());
        if self.running.contains_key(&pod.uid) {
            return None;
        }
        let (pods, runtime) = (Arc::clone(&self.pods), Arc::clone(&self.runtime));
        let of = Arc::clone(pod);
        let mut call = spawn(async move {
            let storage = StarvedResource::EphemeralStorage;
            let found = usage::of_pods(&*pods, &*runtime, vec![Arc::clone(&of)], storage);
            found.await.remove(&of.uid)
        });
        match timeout(PATIENCE, &mut call).await {
            // A panic is a bug, and costs these numbers.
            Ok(found) => found.ok().flatten(),
            Err(_) => {
                warn!(pod = %pod.name, uid = %pod.uid, "Measuring the files of a pod takes too long");
                self.running.insert(pod.uid.clone(), call);
                None
            }
        }
    }
}
