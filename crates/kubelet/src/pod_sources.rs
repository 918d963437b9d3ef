//! What the agent is to run.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_api::pod::Pod;
use rubelet_base::PodUid;
use rubelet_sources::desired::Desired;
use tokio::sync::watch;

/// Desired pods of each source, level-triggered.
pub type PodSources = Vec<watch::Receiver<Arc<Desired>>>;

/// The pods that these sources desire. If several name a UID, the first counts.
pub(crate) fn pods_by_uid<'a>(
    sources: impl Iterator<Item = watch::Ref<'a, Arc<Desired>>>,
) -> BTreeMap<PodUid, Arc<Pod>> {
    let mut pods = BTreeMap::new();
    for source in sources {
        for pod in source.pods.values() {
            pods.entry(pod.uid.clone())
                .or_insert_with(|| Arc::clone(pod));
        }
    }
    pods
}
