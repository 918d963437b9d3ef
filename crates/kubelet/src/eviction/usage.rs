//! The resources that pods use, measured when one of them has to go, and only then.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_api::pod::Pod;
use rubelet_base::{ErrorChain, PodUid};
use rubelet_cri::{RuntimeService, v1};
use rubelet_node_plan::eviction::{ContainerUsage, DiskUsage, PodUsage, StarvedResource};
use rubelet_pod_plan::cri_config::labels::{CONTAINER_NAME, POD_UID};
use tokio::time::timeout;
use tracing::debug;

/// Longest wait for the runtime's statistics if the cgroups of pods are enough to rank them: without
/// memory a runtime may take long, and each moment counts.
const BRIEFLY: Duration = Duration::from_secs(1);
/// Longest wait if only the runtime knows the size of writable layers.
const LONG: Duration = Duration::from_secs(20);

/// Measures pods. Their containers are measured through the runtime.
#[async_trait]
pub trait PodUsageSource: Send + Sync + 'static {
    /// The usage of these pods, as far as it matters for a shortage of `resource`. A pod that runs
    /// nothing uses nothing; one that can't be measured is left out.
    async fn usage(
        &self,
        pods: Vec<Arc<Pod>>,
        resource: StarvedResource,
    ) -> HashMap<PodUid, PodUsage>;
}

/// The usage of these pods with that of their containers.
pub(crate) async fn of_pods(
    source: &dyn PodUsageSource,
    runtime: &dyn RuntimeService,
    pods: Vec<Arc<Pod>>,
    resource: StarvedResource,
) -> HashMap<PodUid, PodUsage> {
    let limit = match resource {
        StarvedResource::Memory | StarvedResource::Pids => BRIEFLY,
        StarvedResource::EphemeralStorage | StarvedResource::Inodes => LONG,
    };
    // To add up the layers of all others costs as much.
    let only = match pods.as_slice() {
        [pod] => Some(v1::ContainerStatsFilter {
            label_selector: [(POD_UID.to_owned(), pod.uid.as_str().to_owned())].into(),
            ..v1::ContainerStatsFilter::default()
        }),
        _ => None,
    };
    let request = v1::ListContainerStatsRequest { filter: only };
    let listed = timeout(limit, runtime.list_container_stats(request));
    let (mut usage, listed) = tokio::join!(source.usage(pods, resource), listed);
    let stats = match listed {
        Ok(Ok(response)) => response.stats,
        Ok(Err(error)) => {
            debug!(error = %ErrorChain(&error), "Cannot get statistics of containers");
            Vec::new()
        }
        Err(_) => {
            debug!("Getting statistics of containers takes too long");
            Vec::new()
        }
    };
    for one in &stats {
        add(&mut usage, one);
    }
    usage
}

/// Adds the statistics of one container to its pod. Several instances of a container are added up:
/// what a dead one left on the disk belongs to the pod too.
fn add(usage: &mut HashMap<PodUid, PodUsage>, stats: &v1::ContainerStats) {
    let Some(attributes) = &stats.attributes else {
        return;
    };
    let label = |name: &str| attributes.labels.get(name).map(String::as_str);
    let (Some(uid), Some(name)) = (label(POD_UID), label(CONTAINER_NAME)) else {
        return;
    };
    let Some(pod) = usage.get_mut(&PodUid::from(uid)) else {
        return;
    };
    let found = pod.containers.iter().position(|one| *one.name == *name);
    let place = found.unwrap_or_else(|| {
        pod.containers.push(ContainerUsage {
            name: name.into(),
            ..ContainerUsage::default()
        });
        pod.containers.len() - 1
    });
    let container = &mut pod.containers[place];
    let working_set = stats.memory.as_ref().and_then(|memory| {
        let bytes = memory.working_set_bytes.as_ref()?;
        Some(bytes.value)
    });
    if let Some(bytes) = working_set {
        *container.memory.get_or_insert(0) += bytes;
    }
    if let Some(layer) = &stats.writable_layer {
        let value =
            |number: &Option<v1::UInt64Value>| number.as_ref().map_or(0, |number| number.value);
        let sum = container.writable_layer.get_or_insert(DiskUsage::default());
        sum.bytes = sum.bytes.saturating_add(value(&layer.used_bytes));
        sum.inodes = sum.inodes.saturating_add(value(&layer.inodes_used));
    }
}
