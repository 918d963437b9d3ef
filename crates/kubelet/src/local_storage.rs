//! Limits of local storage: measures the pods that have some, and evicts those that exceed one.
//!
//! Decided in [`rubelet_node_plan::local_storage`]. While no pod has such a limit nothing runs.

mod limited_pods;
mod measure;

use std::{sync::Arc, time::Duration};

use rubelet_cri::ImageService;
use rubelet_node_plan::{
    eviction::{EVICTED, FileSystemLayout, IMMEDIATE_GRACE, ResourceLevels},
    local_storage::{ExceededLimit, StorageMeasurement, StorageSchedule, exceeded, headroom},
};
use rubelet_node_state::events::EventType;
use rubelet_pod_plan::Eviction;
use tokio::time::{Instant, sleep};
use tracing::info;

use self::{
    limited_pods::{LimitedPod, LimitedPods},
    measure::StorageMeter,
};
use crate::{
    eviction::{LevelSampler, LevelSource, PodUsageSource, RuntimeDirectories},
    pod_task::PodContext,
};

/// Time in which changes of pods are gathered.
const SETTLE: Duration = Duration::from_secs(1);

/// Settings of the limits of local storage.
#[derive(Clone)]
pub struct LocalStorageSettings {
    /// Measures the disks.
    pub levels: Arc<dyn LevelSource>,
    /// Measures pods.
    pub pods: Arc<dyn PodUsageSource>,
}

/// The task that holds pods to their limits.
pub(crate) struct LocalStorageTask {
    sampler: LevelSampler,
    meter: StorageMeter,
    context: Arc<PodContext>,
    images: Arc<dyn ImageService>,
    directories: RuntimeDirectories,
    limited: LimitedPods,
    schedule: StorageSchedule,
}

impl LocalStorageTask {
    pub(crate) fn new(
        settings: LocalStorageSettings,
        context: Arc<PodContext>,
        images: Arc<dyn ImageService>,
    ) -> Self {
        Self {
            sampler: LevelSampler::new(settings.levels),
            meter: StorageMeter::new(settings.pods, Arc::clone(&context.runtime)),
            context,
            images,
            directories: RuntimeDirectories::default(),
            limited: LimitedPods::default(),
            schedule: StorageSchedule::default(),
        }
    }

    /// Looks at the free space, measures, evicts, and waits, for ever.
    pub(crate) async fn run(mut self) {
        let began = Instant::now();
        let mut versions = self.context.board.versions();
        loop {
            self.limited.update(&self.context);
            let limited = &self.limited;
            self.schedule.retain(|uid| limited.get(uid).is_some());
            let next = match self.limited.is_empty() {
                true => Duration::MAX,
                false => self.look(began).await,
            };
            let pods_change = async {
                // The agent stops when there are no more.
                let _ = versions.changed().await;
                sleep(SETTLE).await;
            };
            // Cancel safety: whatever is lost of a change here, all pods are read again.
            tokio::select! {
                () = sleep(next) => {}
                () = pods_change => {}
            }
        }
    }

    /// Measures the pods whose time it is. Returns the time until the next look.
    async fn look(&mut self, began: Instant) -> Duration {
        let runtime_state = self.context.runtime_state.borrow().clone();
        self.directories.find(&*self.images, &runtime_state).await;
        let (levels, layout) = self.sampler.file_systems(&self.directories).await;
        self.schedule.looked(free(&levels, layout), began.elapsed());
        let now = began.elapsed();
        for limited in self.limited.iter() {
            let uid = &limited.pod.uid;
            if !self.schedule.is_due(uid, now) {
                continue;
            }
            let started = Instant::now();
            let usage = self.meter.measure(&limited.pod).await;
            let found = StorageMeasurement {
                // A pod that can't be measured is looked at when anything is written.
                headroom: usage
                    .as_ref()
                    .map_or(0, |usage| headroom(&limited.limits, usage, layout)),
                took: started.elapsed().max(self.meter.delay(uid)),
            };
            self.schedule.measured(uid, found, began.elapsed());
            if let Some(limit) = usage.and_then(|usage| exceeded(&limited.limits, &usage, layout)) {
                evict(&self.context, limited, limit).await;
            }
        }
        self.schedule.next(began.elapsed())
    }
}

/// Has the pod's task terminate it, with phase `Failed` and reason `Evicted`. There is no condition
/// `DisruptionTarget`: the pod did it.
async fn evict(context: &PodContext, limited: &LimitedPod, limit: ExceededLimit) {
    let ExceededLimit { kind, message } = limit;
    let pod = &limited.pod;
    info!(pod = %pod.name, uid = %pod.uid, %message, "Evicting pod");
    context
        .recorder
        .pod(pod, None, EventType::Warning, EVICTED, &message);
    let eviction = Eviction {
        reason: EVICTED.into(),
        message: message.into(),
        grace: Some(IMMEDIATE_GRACE),
    };
    let noted = context.intents.update_without_space(&pod.uid, |intents| {
        intents.eviction.get_or_insert(eviction);
    });
    noted.await;
    context.metrics.pods.evicted(kind.signal());
}

/// The bytes that are free where pods write; `None` if a file system does not respond.
fn free(levels: &ResourceLevels, layout: FileSystemLayout) -> Option<u64> {
    let volumes = levels.nodefs?.bytes.available;
    let layers = match layout {
        FileSystemLayout::Single => 0,
        FileSystemLayout::ImageFileSystem => levels.imagefs?.bytes.available,
        FileSystemLayout::SplitImageFileSystem => levels.containerfs?.bytes.available,
    };
    Some(volumes.saturating_add(layers))
}
