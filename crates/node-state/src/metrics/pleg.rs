//! Metrics of PLEG.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use prometheus::{Gauge, Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::{
    factory::{DEFAULT_BUCKETS, FAST_BUCKETS, MetricFactory},
    probe::Probe,
};

/// Values that are read at each scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlegSnapshot {
    /// When PLEG was last seen active, as the health check counts it; `None` before the first time.
    pub last_seen: Option<Timestamp>,
    /// Age of the relist in progress.
    pub relist: Option<Duration>,
    /// Age of the oldest inspection in progress.
    pub oldest_inspection: Option<Duration>,
    /// Pods whose inspections hang.
    pub quarantined_pods: usize,
}

/// All states of [`PlegMetrics::set_running`], with upstream's names.
const STATES: [&str; 4] = ["created", "exited", "running", "unknown"];

/// Metrics of PLEG.
pub struct PlegMetrics {
    /// `kubelet_pleg_relist_duration_seconds`: duration of relists, including failed ones.
    pub relist_duration: Histogram,
    /// `kubelet_pleg_relist_interval_seconds`: from the start of one relist to that of the next.
    pub relist_interval: Histogram,
    /// `kubelet_pleg_pod_relist_duration_seconds`: duration of the inspection of one pod.
    pub pod_relist_duration: Histogram,
    /// `kubelet_pleg_discard_events`: stays 0, as nothing is ever discarded.
    pub discard_events: IntCounter,
    /// `kubelet_evented_pleg_connection_error_count`: streams of events that failed.
    pub connection_errors: IntCounter,
    /// `kubelet_evented_pleg_connection_success_count`: streams of events that were opened.
    pub connection_successes: IntCounter,
    /// `kubelet_evented_pleg_connection_latency_seconds`: from the runtime's timestamp of an event
    /// to its arrival. Upstream observes it for each event as well, unlike its help text.
    pub connection_latency: Histogram,
    /// `rubelet_pleg_exit_to_delivery_seconds`: from the runtime's timestamp of an exit until the
    /// pod's task is notified.
    pub exit_to_delivery: Histogram,
    /// `rubelet_pleg_event_to_sync_seconds`: from the arrival of an event until the pod's task
    /// starts to sync the change.
    pub event_to_sync: Histogram,
    /// `rubelet_pleg_watched_processes`: containers whose exit the kernel will report.
    pub watched_processes: IntGauge,
    /// `rubelet_pleg_process_ends_total`: exits that the kernel reported before the runtime did.
    pub process_ends: IntCounter,
    /// `rubelet_pleg_lost_ends_total`: containers that the runtime reports as running although
    /// their process has been gone for long.
    pub lost_ends: IntCounter,
    last_seen: IntGauge,
    running_pods: IntGauge,
    running_containers: IntGaugeVec,
    missed_changes: IntCounterVec,
    inspections: IntCounterVec,
    events: IntCounterVec,
    quarantined_pods: IntGauge,
    relist_in_progress: Gauge,
    inspection_in_progress: Gauge,
    probe: Probe<PlegSnapshot>,
}

impl PlegMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            relist_duration: factory.histogram(
                "kubelet_pleg_relist_duration_seconds",
                "Duration in seconds for relisting pods in PLEG.",
                DEFAULT_BUCKETS,
            ),
            relist_interval: factory.histogram(
                "kubelet_pleg_relist_interval_seconds",
                "Interval in seconds between relisting in PLEG.",
                DEFAULT_BUCKETS,
            ),
            pod_relist_duration: factory.histogram(
                "kubelet_pleg_pod_relist_duration_seconds",
                "Duration in seconds for relisting a single pod in PLEG.",
                DEFAULT_BUCKETS,
            ),
            discard_events: factory.counter(
                "kubelet_pleg_discard_events",
                "The number of discard events in PLEG.",
            ),
            connection_errors: factory.counter(
                "kubelet_evented_pleg_connection_error_count",
                "The number of errors encountered during the establishment of streaming \
                 connection with the CRI runtime.",
            ),
            connection_successes: factory.counter(
                "kubelet_evented_pleg_connection_success_count",
                "The number of times a streaming client was obtained to receive CRI Events.",
            ),
            connection_latency: factory.histogram(
                "kubelet_evented_pleg_connection_latency_seconds",
                "The latency of streaming connection with the CRI runtime, measured in seconds.",
                DEFAULT_BUCKETS,
            ),
            exit_to_delivery: factory.histogram(
                "rubelet_pleg_exit_to_delivery_seconds",
                "Time from the runtime's timestamp of a container exit until its pod's task is notified.",
                FAST_BUCKETS,
            ),
            event_to_sync: factory.histogram(
                "rubelet_pleg_event_to_sync_seconds",
                "Time from the arrival of a runtime event until the pod's task started to sync it.",
                FAST_BUCKETS,
            ),
            watched_processes: factory.gauge(
                "rubelet_pleg_watched_processes",
                "Containers whose exit the kernel will report.",
            ),
            process_ends: factory.counter(
                "rubelet_pleg_process_ends_total",
                "Container exits that the kernel reported before the runtime.",
            ),
            lost_ends: factory.counter(
                "rubelet_pleg_lost_ends_total",
                "Containers that the runtime reports as running although their process has exited.",
            ),
            last_seen: factory.gauge(
                "kubelet_pleg_last_seen_seconds",
                "Timestamp in seconds when PLEG was last seen active.",
            ),
            running_pods: factory.gauge(
                "kubelet_running_pods",
                "Number of pods that have a running pod sandbox",
            ),
            running_containers: factory.gauges(
                "kubelet_running_containers",
                "Number of containers currently running",
                "container_state",
            ),
            missed_changes: factory.counters(
                "rubelet_pleg_missed_changes_total",
                "Changes without a runtime event, by type.",
                "type",
            ),
            inspections: factory.counters(
                "rubelet_pleg_inspections_total",
                "Inspections of single pods, by their first cause.",
                "cause",
            ),
            events: factory.counters(
                "rubelet_pleg_events_total",
                "Events received from the runtime, by type.",
                "type",
            ),
            quarantined_pods: factory.gauge(
                "rubelet_pleg_quarantined_pods",
                "Pods whose inspections hang in the runtime.",
            ),
            relist_in_progress: factory.seconds(
                "rubelet_pleg_relist_in_progress_seconds",
                "Age of the running relist; 0 if there is none.",
            ),
            inspection_in_progress: factory.seconds(
                "rubelet_pleg_inspection_in_progress_seconds",
                "Age of the oldest running inspection; 0 if there is none.",
            ),
            probe: Probe::new(),
        }
    }

    /// Sets the source of [`PlegSnapshot`], called at each scrape. It must not wait for the runtime,
    /// and should hold no strong reference to these metrics.
    pub fn set_probe(&self, probe: impl Fn() -> PlegSnapshot + Send + Sync + 'static) {
        self.probe.set(probe);
    }

    /// Sets `kubelet_running_pods`, the pods with a sandbox that is ready, and
    /// `kubelet_running_containers` by state: `created`, `running`, `exited` or `unknown`. A state
    /// that is not named becomes 0.
    pub fn set_running(&self, pods: usize, containers: &[(&str, usize)]) {
        self.running_pods.set(whole(pods));
        let named = |state: &str| containers.iter().find(|(name, _)| *name == state);
        for state in STATES {
            let count = named(state).map_or(0, |(_, count)| *count);
            let gauge = self.running_containers.with_label_values(&[state]);
            gauge.set(whole(count));
        }
    }

    /// Counts a change without an event; `kind` is its kind, or how it was found.
    pub fn missed_change(&self, kind: &str) {
        self.missed_changes.with_label_values(&[kind]).inc();
    }

    /// Counts an inspection of a pod by its first cause.
    pub fn inspection(&self, cause: &str) {
        self.inspections.with_label_values(&[cause]).inc();
    }

    /// Counts an event from the runtime.
    pub fn event(&self, kind: &str) {
        self.events.with_label_values(&[kind]).inc();
    }

    /// Updates the metrics that are read at each scrape.
    pub(super) fn look(&self) {
        let Some(now) = self.probe.read() else {
            return;
        };
        let seconds = |age: Option<Duration>| age.unwrap_or_default().as_secs_f64();
        if let Some(at) = now.last_seen {
            self.last_seen.set(at.as_second());
        }
        self.relist_in_progress.set(seconds(now.relist));
        self.inspection_in_progress
            .set(seconds(now.oldest_inspection));
        self.quarantined_pods.set(whole(now.quarantined_pods));
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl fmt::Debug for PlegMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlegMetrics")
    }
}
