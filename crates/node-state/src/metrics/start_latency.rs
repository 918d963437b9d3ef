//! How long pods of the API server take to start, as Kubernetes' service level indicator measures it: from their
//! creation until their node learns from the API server that all their containers run.
//!
//! Source: `pkg/kubelet/util/pod_startup_latency_tracker.go`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus::{Gauge, HistogramVec};
use rubelet_base::PodUid;
use tokio::time::Instant;

use super::{factory::MetricFactory, pods::START_BUCKETS};

/// A pod as the API server shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedStart {
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// What its status says.
    pub progress: StartProgress,
    /// Whether it has a volume whose content outlives it, such as a `hostPath`: the indicator leaves it out.
    pub is_stateful: bool,
    /// Whether it has the host's network.
    pub has_host_network: bool,
}

/// How far a pod has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartProgress {
    /// It could not be bound to a node for a time: the indicator leaves it out.
    WasUnschedulable,
    /// No node has taken it up.
    New,
    /// A container does not run.
    Starting,
    /// All containers run. Its init containers ran for this time in all.
    Started {
        /// Time of its init containers.
        init: Duration,
    },
    /// It has ended.
    Ended,
}

/// How long pods of the API server take to start.
#[derive(Debug)]
pub struct StartLatencyMetrics {
    total: HistogramVec,
    indicator: HistogramVec,
    first_with_network: Gauge,
    state: Mutex<StartLatencyState>,
}

#[derive(Debug, Default)]
struct StartLatencyState {
    /// Pods that were seen before a node had taken them up, and that have not started.
    starting: BTreeMap<PodUid, PullTimes>,
    has_seen_network: bool,
}

/// Pulls of images of one pod. Times in which several went on count once.
#[derive(Debug, Default)]
struct PullTimes {
    going_on: usize,
    began: Option<Instant>,
    spent: Duration,
}

impl StartLatencyMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            total: factory.histograms_by(
                "kubelet_pod_start_total_duration_seconds",
                "Duration in seconds to start a pod since creation, including time to pull images \
                 and run init containers, measured from pod creation timestamp to when all its \
                 containers are reported as started and observed via watch",
                START_BUCKETS,
                &[],
            ),
            indicator: factory.histograms_by(
                "kubelet_pod_start_sli_duration_seconds",
                "Duration in seconds to start a pod, excluding time to pull images and run init \
                 containers, measured from pod creation timestamp to when all its containers are \
                 reported as started and observed via watch",
                START_BUCKETS,
                &[],
            ),
            first_with_network: factory.internal_seconds(
                "kubelet_first_network_pod_start_sli_duration_seconds",
                "Duration in seconds to start the first network pod, excluding time to pull images \
                 and run init containers, measured from pod creation timestamp to when all its \
                 containers are reported as started and observed via watch",
            ),
            state: Mutex::default(),
        }
    }

    /// The API server shows this of a pod at `now`.
    pub fn observed(&self, uid: &PodUid, pod: &ObservedStart, now: Timestamp) {
        let mut state = self.state.lock();
        let init = match pod.progress {
            StartProgress::New => {
                state.starting.entry(uid.clone()).or_default();
                return;
            }
            StartProgress::Starting => return,
            StartProgress::WasUnschedulable | StartProgress::Ended => {
                state.starting.remove(uid);
                return;
            }
            StartProgress::Started { init } => init,
        };
        let (Some(pulls), Some(created)) = (state.starting.remove(uid), pod.created) else {
            return;
        };
        let took = Duration::try_from(now.duration_since(created)).unwrap_or_default();
        let empty: &[&str] = &[];
        self.total
            .with_label_values(empty)
            .observe(took.as_secs_f64());
        if pod.is_stateful {
            return;
        }
        let own = took.saturating_sub(pulls.spent).saturating_sub(init);
        self.indicator
            .with_label_values(empty)
            .observe(own.as_secs_f64());
        if !pod.has_host_network && !state.has_seen_network {
            state.has_seen_network = true;
            self.first_with_network.set(own.as_secs_f64());
        }
    }

    /// Whether the pod is starting, as far as was observed.
    #[must_use]
    pub fn is_starting(&self, uid: &PodUid) -> bool {
        self.state.lock().starting.contains_key(uid)
    }

    /// The API server no longer has the pod.
    pub fn forget(&self, uid: &PodUid) {
        self.state.lock().starting.remove(uid);
    }

    /// A pull of an image for this pod begins; it ends with what is returned.
    pub fn pulling<'a>(&'a self, uid: &'a PodUid) -> PodPull<'a> {
        if let Some(pulls) = self.state.lock().starting.get_mut(uid) {
            pulls.going_on += 1;
            pulls.began.get_or_insert_with(Instant::now);
        }
        PodPull { metrics: self, uid }
    }
}

/// A pull of an image for a pod that may be starting.
#[must_use = "the pull ends when this is dropped"]
#[derive(Debug)]
pub struct PodPull<'a> {
    metrics: &'a StartLatencyMetrics,
    uid: &'a PodUid,
}

impl Drop for PodPull<'_> {
    fn drop(&mut self) {
        let mut state = self.metrics.state.lock();
        // It is missing as well if the pod was first seen during the pull.
        let Some(pulls) = state
            .starting
            .get_mut(self.uid)
            .filter(|pulls| pulls.going_on > 0)
        else {
            return;
        };
        pulls.going_on -= 1;
        if pulls.going_on == 0
            && let Some(began) = pulls.began.take()
        {
            pulls.spent += began.elapsed();
        }
    }
}
