//! Metrics of pod tasks.

use std::time::Duration;

use jiff::Timestamp;
use prometheus::{Histogram, HistogramVec, IntCounterVec};
use rubelet_api::{
    annotations::CONFIG_SEEN,
    pod::Pod,
    status::{Phase, PodStatus},
};

use super::factory::{DEFAULT_BUCKETS, MetricFactory};

/// Upstream's buckets of times in which pods start, in seconds.
pub(super) const START_BUCKETS: &[f64] = &[
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0,
    300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
];

/// Reasons of rejections that are counted by themselves (kubelet: `admissionRejectionReasons`); others could be any
/// number.
const COUNTED_REJECTIONS: &[&str] = &[
    "AppArmor",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "PodOSNotSupported",
    "InvalidNodeInfo",
    "InitContainerRestartPolicyForbidden",
    "SupplementalGroupsPolicyNotSupported",
    "UnexpectedAdmissionError",
    "UnknownReason",
    "UnexpectedPredicateFailureType",
    "OutOfcpu",
    "OutOfmemory",
    "OutOfephemeral-storage",
    "OutOfpods",
    "PodLevelResourcesNotSupported",
    "PodFeatureUnsupported",
    "node(s) had taints that the pod didn't tolerate",
    "Evicted",
    "SysctlForbidden",
    "TopologyAffinityError",
    "NodeShutdown",
    "VolumeAttachmentLimitExceeded",
];

/// The operation type of a sync, with upstream's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncKind {
    /// The first of a task.
    Create,
    /// The first after an edit of the pod.
    Update,
    /// Any other.
    Sync,
    /// One of a pod that is being removed.
    Kill,
    /// The last of a task.
    Terminated,
}

impl SyncKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Sync => "sync",
            Self::Kill => "kill",
            Self::Terminated => "terminated",
        }
    }
}

/// A change of a pod's cgroup, or of that of a QoS tier, with upstream's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupChange {
    /// It did not exist.
    Create,
    /// Its values were set again.
    Update,
    /// It was removed.
    Destroy,
}

impl CgroupChange {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Destroy => "destroy",
        }
    }
}

/// Metrics of pod tasks.
#[derive(Debug)]
pub struct PodMetrics {
    start_duration: Histogram,
    worker_duration: HistogramVec,
    worker_start_duration: Histogram,
    preemptions: IntCounterVec,
    evictions: IntCounterVec,
    rejections: IntCounterVec,
    eviction_stats_age: HistogramVec,
    volume_measurements: HistogramVec,
    cgroup_changes: HistogramVec,
}

impl PodMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            start_duration: factory.histogram(
                "kubelet_pod_start_duration_seconds",
                "Duration in seconds from kubelet seeing a pod for the first time to the pod \
                 starting to run",
                START_BUCKETS,
            ),
            worker_duration: factory.histograms(
                "kubelet_pod_worker_duration_seconds",
                "Duration in seconds to sync a single pod. Broken down by operation type: create, \
                 update, or sync",
                DEFAULT_BUCKETS.to_vec(),
                "operation_type",
            ),
            worker_start_duration: factory.histogram(
                "kubelet_pod_worker_start_duration_seconds",
                "Duration in seconds from kubelet seeing a pod to starting a worker.",
                DEFAULT_BUCKETS,
            ),
            preemptions: factory.counters(
                "kubelet_preemptions",
                "Cumulative number of pod preemptions by preemption resource",
                "preemption_signal",
            ),
            evictions: factory.counters(
                "kubelet_evictions",
                "Cumulative number of pod evictions by eviction signal",
                "eviction_signal",
            ),
            rejections: factory.counters(
                "kubelet_admission_rejections_total",
                "Cumulative number pod admission rejections by the Kubelet.",
                "reason",
            ),
            eviction_stats_age: factory.histograms(
                "kubelet_eviction_stats_age_seconds",
                "Time between when stats are collected, and when pod is evicted based on those \
                 stats by eviction signal",
                DEFAULT_BUCKETS.to_vec(),
                "eviction_signal",
            ),
            volume_measurements: factory.histograms(
                "kubelet_volume_metric_collection_duration_seconds",
                "Duration in seconds to calculate volume stats",
                DEFAULT_BUCKETS.to_vec(),
                "metric_source",
            ),
            cgroup_changes: factory.histograms(
                "kubelet_cgroup_manager_duration_seconds",
                "Duration in seconds for cgroup manager operations. Broken down by method.",
                DEFAULT_BUCKETS.to_vec(),
                "operation_type",
            ),
        }
    }

    /// A sync ended this long after the pod's task was woken.
    pub fn synced(&self, kind: SyncKind, took: Duration) {
        let histogram = self.worker_duration.with_label_values(&[kind.as_str()]);
        histogram.observe(took.as_secs_f64());
    }

    /// A change of a cgroup took this long, whether it succeeded or not.
    pub fn cgroup_changed(&self, change: CgroupChange, took: Duration) {
        let histogram = self.cgroup_changes.with_label_values(&[change.as_str()]);
        histogram.observe(took.as_secs_f64());
    }

    /// Counts a preempted pod under the first missing resource: the sum is the number of pods, as
    /// in upstream.
    pub fn preempted(&self, resource: &str) {
        self.preemptions.with_label_values(&[resource]).inc();
    }

    /// Counts a pod that was rejected for this reason of its status.
    pub fn rejected(&self, reason: &str) {
        let reason = match reason {
            known if COUNTED_REJECTIONS.contains(&known) => known,
            // `OutOf` is followed by the resource, which others choose.
            _ if reason.starts_with("OutOf") => "OutOfExtendedResources",
            _ => "Other",
        };
        self.rejections.with_label_values(&[reason]).inc();
    }

    /// Counts a pod that was evicted for this signal, such as `memory.available`.
    pub fn evicted(&self, signal: &str) {
        self.evictions.with_label_values(&[signal]).inc();
    }

    /// A pod is chosen for eviction this long after the level of the signal was measured.
    pub fn eviction_measured(&self, signal: &str, age: Duration) {
        let histogram = self.eviction_stats_age.with_label_values(&[signal]);
        histogram.observe(age.as_secs_f64());
    }

    /// Adding up the files of a volume took this time.
    pub fn volume_measured(&self, took: Duration) {
        // The kubelet's other source is `fsquota`.
        let histogram = self.volume_measurements.with_label_values(&["du"]);
        histogram.observe(took.as_secs_f64());
    }

    /// The task of a desired pod started.
    pub fn task_started(&self, pod: &Pod, now: Timestamp) {
        if let Some(seconds) = since_seen(pod, now) {
            self.worker_start_duration.observe(seconds);
        }
    }

    /// The status of a pod changed. The pod has started when its phase becomes Running for the
    /// first time, as in upstream: all containers have been started by then.
    pub fn status(&self, pod: &Pod, before: Option<&PodStatus>, after: &PodStatus, now: Timestamp) {
        let was_pending = before.is_some_and(|before| before.phase == Phase::Pending);
        if was_pending
            && after.phase == Phase::Running
            && let Some(seconds) = since_seen(pod, now)
        {
            self.start_duration.observe(seconds);
        }
    }
}

/// Seconds since the pod was first seen in its source; 0 if the wall clock was set back.
fn since_seen(pod: &Pod, now: Timestamp) -> Option<f64> {
    let seen: Timestamp = pod.annotations.get(CONFIG_SEEN)?.parse().ok()?;
    Some(now.duration_since(seen).as_secs_f64().max(0.0))
}
