//! Eviction: measures the node, publishes the pressure on it, and for a shortage frees what the node
//! can free, or else evicts one pod.
//!
//! Decided in [`rubelet_node_plan::eviction`]. Nothing is measured of pods before one of them has to
//! go.

mod alarm;
mod levels;
mod pods;
pub(crate) mod usage;

use std::{
    collections::{BTreeSet, HashMap},
    future::pending,
    sync::Arc,
    time::Duration,
};

use rubelet_base::PodUid;
use rubelet_cri::ImageService;
use rubelet_node_plan::eviction::{
    EvictionCandidate, EvictionChoice, EvictionMonitor, EvictionPolicy, FileSystemLayout,
    IMMEDIATE_GRACE, MeasuringSchedule, NodeReclaim, PodUsage, Pressure, ResourceLevels, Shortage,
    THRESHOLD_MET, choose, threshold_met,
};
use rubelet_node_state::events::{EventType, Subject};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

pub(crate) use self::levels::LevelSampler;
use self::pods::ActivePod;
pub use self::{
    alarm::{KernelMemoryAlarm, MemoryAlarm},
    levels::{FileSystemLevels, LevelSource, MachineLevels, RuntimeDirectories},
    usage::PodUsageSource,
};
use crate::{image_collection::ImageReclaimer, pod_task::PodContext};

/// Time between an alarm and the measurement: alarms that follow each other must not keep the agent
/// busy.
const AFTER_ALARM: Duration = Duration::from_millis(50);

/// Longest wait for the removal of unused images.
const RECLAIM_PATIENCE: Duration = Duration::from_secs(30);

/// Settings of eviction.
#[derive(Clone)]
pub struct EvictionSettings {
    /// The thresholds.
    pub policy: EvictionPolicy,
    /// Measures the node.
    pub levels: Arc<dyn LevelSource>,
    /// Measures pods.
    pub pods: Arc<dyn PodUsageSource>,
    /// Reports that memory may be short; `None`: it is only measured from time to time.
    pub alarm: Option<Arc<dyn MemoryAlarm>>,
}

/// The task of eviction.
pub(crate) struct EvictionTask {
    policy: EvictionPolicy,
    sampler: LevelSampler,
    pod_usage: Arc<dyn PodUsageSource>,
    alarm: Option<Arc<dyn MemoryAlarm>>,
    context: Arc<PodContext>,
    images: Arc<dyn ImageService>,
    image_reclaimer: Option<ImageReclaimer>,
    node_name: Arc<str>,
    pressure: watch::Sender<Pressure>,
    /// The runtime's directories, once it has named them.
    directories: RuntimeDirectories,
    /// Pods that did not end in time.
    stuck: BTreeSet<PodUid>,
}

/// The dependencies of the task.
pub(crate) struct EvictionParts {
    pub(crate) settings: EvictionSettings,
    pub(crate) context: Arc<PodContext>,
    pub(crate) images: Arc<dyn ImageService>,
    /// Removes unused images; `None` if that is not possible.
    pub(crate) image_reclaimer: Option<ImageReclaimer>,
    pub(crate) node_name: Arc<str>,
    /// Where the pressure is published.
    pub(crate) pressure: watch::Sender<Pressure>,
}

/// What came of handling a shortage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relief {
    /// A pod has ended, or did not in time.
    PodEnded,
    /// The node freed enough by itself.
    NodeFreed,
    /// Nothing can be done.
    None,
}

impl EvictionTask {
    pub(crate) fn new(parts: EvictionParts) -> Self {
        let EvictionSettings {
            policy,
            levels,
            pods,
            alarm,
        } = parts.settings;
        Self {
            policy,
            sampler: LevelSampler::new(levels),
            pod_usage: pods,
            alarm,
            context: parts.context,
            images: parts.images,
            image_reclaimer: parts.image_reclaimer,
            node_name: parts.node_name,
            pressure: parts.pressure,
            directories: RuntimeDirectories::default(),
            stuck: BTreeSet::new(),
        }
    }

    /// Measures, acts, and waits, for ever.
    pub(crate) async fn run(mut self) {
        let began = Instant::now();
        let mut monitor = EvictionMonitor::default();
        let mut schedule = MeasuringSchedule::default();
        loop {
            let runtime_state = self.context.runtime_state.borrow().clone();
            self.directories.find(&*self.images, &runtime_state).await;
            let (levels, layout) = self.sampler.measure(&self.directories).await;
            let now = began.elapsed();
            let round = monitor.observe(&self.policy, &levels, now);
            let next = schedule.next(&self.policy, &levels, &round, now);
            self.publish(round.pressure);
            // Measured again without a pause: one pod may not be enough.
            if !self.handle_first(&round.due, layout).await {
                self.pause(next, self.policy.memory_headroom(&levels)).await;
            }
        }
    }

    /// Waits for the next measurement, or until memory may be short.
    async fn pause(&self, next: Duration, headroom: Option<u64>) {
        let alarm = async {
            match &self.alarm {
                Some(alarm) => alarm.rings(headroom).await,
                None => pending().await,
            }
            sleep(AFTER_ALARM).await;
        };
        // Cancel safety: an alarm that is lost here is followed by a measurement.
        tokio::select! {
            () = sleep(next) => {}
            () = alarm => {}
        }
    }

    /// Handles the first shortage for which something can be done. Returns true if a pod has gone.
    async fn handle_first(&mut self, due: &[Shortage], layout: FileSystemLayout) -> bool {
        let mut tried = None;
        for shortage in due {
            // Of a hard and a soft threshold of one signal, the hard one is first.
            if tried.replace(shortage.threshold.signal) == Some(shortage.threshold.signal) {
                continue;
            }
            match self.handle(shortage, layout).await {
                Relief::PodEnded => return true,
                Relief::NodeFreed => return false,
                Relief::None => {}
            }
        }
        false
    }

    fn publish(&self, pressure: Pressure) {
        let changed = self.pressure.send_if_modified(|known| {
            let changed = *known != pressure;
            *known = pressure;
            changed
        });
        if changed {
            info!(?pressure, "Pressure on the node changed");
        }
    }

    async fn handle(&mut self, shortage: &Shortage, layout: FileSystemLayout) -> Relief {
        let measured = Instant::now();
        let signal = shortage.threshold.signal;
        let resource = signal.resource();
        self.context.recorder.record(
            Subject::Node((&*self.node_name).into()),
            EventType::Warning,
            THRESHOLD_MET,
            &threshold_met(resource),
        );
        if self.reclaim(layout.reclaims(signal)).await {
            info!(
                signal = signal.as_str(),
                "Freed enough without evicting a pod"
            );
            return Relief::NodeFreed;
        }
        let active = self.active_pods();
        let pods = active.iter().map(|one| Arc::clone(&one.pod)).collect();
        let usage = usage::of_pods(&*self.pod_usage, &*self.context.runtime, pods, resource).await;
        match choose(&self.policy, layout, shortage, &candidates(&active, &usage)) {
            EvictionChoice::NoCandidate => {
                warn!(
                    signal = signal.as_str(),
                    "A resource of the node is short, and there is no pod that may be evicted"
                );
                Relief::None
            }
            EvictionChoice::AwaitEnd(uid) => {
                self.hasten(&uid, IMMEDIATE_GRACE).await;
                self.until_ended(&uid, IMMEDIATE_GRACE).await;
                Relief::PodEnded
            }
            EvictionChoice::Evict(eviction) => {
                let Some(found) = active.iter().find(|one| one.pod.uid == eviction.uid) else {
                    return Relief::None;
                };
                let metrics = &self.context.metrics.pods;
                metrics.eviction_measured(signal.as_str(), measured.elapsed());
                self.evict(&found.pod, &eviction).await;
                metrics.evicted(signal.as_str());
                self.until_ended(&eviction.uid, eviction.grace).await;
                Relief::PodEnded
            }
        }
    }

    /// Frees what the node can free by itself. Returns true if no resource is short after that.
    async fn reclaim(&mut self, reclaims: &[NodeReclaim]) -> bool {
        if reclaims.is_empty() {
            return false;
        }
        for reclaim in reclaims {
            match (reclaim, &self.image_reclaimer) {
                (NodeReclaim::UnusedImages, Some(images)) => {
                    // It continues without a waiter. Until all pods are known no image is unused,
                    // and other shortages must not wait for that.
                    let _ = timeout(RECLAIM_PATIENCE, images.remove_unused()).await;
                }
                (NodeReclaim::UnusedImages, None) => {}
                (NodeReclaim::DeadContainers, _) => self.discard_dead_containers().await,
            }
        }
        let (levels, _) = self.sampler.measure(&self.directories).await;
        levels != ResourceLevels::default() && !self.policy.has_shortage(&levels)
    }
}

fn candidates<'a>(
    active: &'a [ActivePod],
    usage: &'a HashMap<PodUid, PodUsage>,
) -> Vec<EvictionCandidate<'a>> {
    active
        .iter()
        .map(|one| EvictionCandidate {
            pod: &one.pod,
            // One that hides its files among too many others goes first.
            usage: usage.get(&one.pod.uid).filter(|usage| !usage.is_partial),
            is_leaving: one.is_leaving,
        })
        .collect()
}
