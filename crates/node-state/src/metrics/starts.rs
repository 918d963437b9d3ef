//! Metrics of starts of pods and containers, and of ends of containers.

use std::{collections::BTreeSet, time::Duration};

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec};
use rubelet_api::{
    container::Container,
    pod::Pod,
    status::{ContainerState, ContainerStatus, PodStatus, Terminated},
    volume::VolumeSource,
};

use super::factory::{DEFAULT_BUCKETS, MetricFactory};

/// Upstream's values of `container_type`.
const REGULAR: &str = "container";
const INIT: &str = "init_container";
const EPHEMERAL: &str = "ephemeral_container";

/// Metrics of starts of pods and containers, and of ends of containers.
#[derive(Debug)]
pub struct StartMetrics {
    containers_per_pod: Histogram,
    sandboxes: HistogramVec,
    sandbox_errors: IntCounterVec,
    pods: IntCounter,
    pod_errors: IntCounter,
    user_namespaced_pods: IntCounter,
    user_namespaced_pod_errors: IntCounter,
    containers: IntCounterVec,
    container_errors: IntCounterVec,
    terminated: IntCounterVec,
    image_volumes: ImageVolumeMetrics,
}

impl StartMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        let this = Self {
            containers_per_pod: factory.histogram(
                "kubelet_containers_per_pod_count",
                "The number of containers per pod.",
                &[1.0, 2.0, 4.0, 8.0, 16.0],
            ),
            sandboxes: factory.histograms(
                "kubelet_run_podsandbox_duration_seconds",
                "Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.",
                DEFAULT_BUCKETS.to_vec(),
                "runtime_handler",
            ),
            sandbox_errors: factory.counters(
                "kubelet_run_podsandbox_errors_total",
                "Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.",
                "runtime_handler",
            ),
            pods: factory.counter(
                "kubelet_started_pods_total",
                "Cumulative number of pods started",
            ),
            pod_errors: factory.counter(
                "kubelet_started_pods_errors_total",
                "Cumulative number of errors when starting pods",
            ),
            user_namespaced_pods: factory.counter(
                "kubelet_started_user_namespaced_pods_total",
                "Cumulative number of pods with user namespaces started. This metric will only be \
                 collected on Linux.",
            ),
            user_namespaced_pod_errors: factory.counter(
                "kubelet_started_user_namespaced_pods_errors_total",
                "Cumulative number of errors when starting pods with user namespaces. This metric \
                 will only be collected on Linux.",
            ),
            containers: factory.counters(
                "kubelet_started_containers_total",
                "Cumulative number of containers started",
                "container_type",
            ),
            container_errors: factory.counters_by(
                "kubelet_started_containers_errors_total",
                "Cumulative number of errors when starting containers",
                &["container_type", "code"],
            ),
            terminated: factory.counters_by(
                "kubelet_terminated_containers_total",
                "Cumulative number of container terminations.",
                &["container_type", "exit_code", "reason"],
            ),
            image_volumes: ImageVolumeMetrics::new(factory),
        };
        for kind in [REGULAR, INIT, EPHEMERAL] {
            this.containers.with_label_values(&[kind]);
        }
        this
    }

    /// The task of a pod that is to run begins.
    pub fn pod_accepted(&self, pod: &Pod) {
        self.containers_per_pod
            .observe(pod.spec.containers.len() as f64);
    }

    /// A start of a pod begins: the first one, or one with a new sandbox.
    pub fn pod_starting(&self, pod: &Pod) {
        self.pods.inc();
        if !pod.spec.host_users {
            self.user_namespaced_pods.inc();
        }
    }

    /// A start of a pod failed: it has no sandbox.
    pub fn pod_failed(&self, pod: &Pod) {
        self.pod_errors.inc();
        if !pod.spec.host_users {
            self.user_namespaced_pod_errors.inc();
        }
    }

    /// A `RunPodSandbox` took this long. `handler` is empty for the default one.
    pub fn sandbox_ended(&self, handler: &str, took: Duration, is_ok: bool) {
        let histogram = self.sandboxes.with_label_values(&[handler]);
        histogram.observe(took.as_secs_f64());
        if !is_ok {
            self.sandbox_errors.with_label_values(&[handler]).inc();
        }
    }

    /// A start of a container begins, its image included.
    pub fn container_starting(&self, pod: &Pod, container: &str) {
        let kind = container_type(pod, container);
        self.containers.with_label_values(&[kind]).inc();
    }

    /// A start of a container failed for this waiting reason, such as `ErrImagePull`.
    pub fn container_failed(&self, pod: &Pod, container: &str, reason: &str) {
        let labels = [container_type(pod, container), reason];
        self.container_errors.with_label_values(&labels).inc();
    }

    /// The runtime was asked for a container, which mounts images; `failure` is its answer if it refused.
    pub fn images_mounted(&self, pod: &Pod, container: &Container, failure: Option<&str>) {
        self.image_volumes.mounted(pod, container, failure);
    }

    /// The status of a pod changed: counts the containers that have terminated since, each instance once.
    pub fn status(&self, before: Option<&PodStatus>, after: &PodStatus) {
        for (kind, list) in lists(after) {
            for status in list {
                let known = before.and_then(|before| before.container(&status.name));
                let known: Vec<&Terminated> = known.map(ends).into_iter().flatten().collect();
                // Of a container that is seen for the first time, an earlier instance ended before this agent.
                let is_new = before.is_none_or(|before| before.container(&status.name).is_none());
                let ends = ends(status).skip(usize::from(is_new && status.last_state.is_some()));
                for end in ends.filter(|end| !known.iter().any(|known| is_same(known, end))) {
                    let code = end.exit_code.to_string();
                    let labels = [kind, &*code, &*end.reason];
                    self.terminated.with_label_values(&labels).inc();
                }
            }
        }
    }
}

/// The ends of instances that a status shows, the last but one first.
fn ends(status: &ContainerStatus) -> impl Iterator<Item = &Terminated> {
    let last = match &status.state {
        ContainerState::Terminated(end) => Some(end),
        ContainerState::Waiting { .. } | ContainerState::Running { .. } => None,
    };
    status.last_state.iter().chain(last)
}

/// Whether both are of one instance.
fn is_same(one: &Terminated, other: &Terminated) -> bool {
    (&one.container_id, one.finished_at) == (&other.container_id, other.finished_at)
}

fn lists(status: &PodStatus) -> [(&'static str, &[ContainerStatus]); 3] {
    [
        (INIT, &status.init_containers),
        (REGULAR, &status.containers),
        (EPHEMERAL, &status.ephemeral_containers),
    ]
}

fn container_type(pod: &Pod, name: &str) -> &'static str {
    let is_named = |container: &Container| *container.name == *name;
    if pod.spec.init_containers.iter().any(is_named) {
        INIT
    } else if pod.spec.containers.iter().any(is_named) {
        REGULAR
    } else {
        EPHEMERAL
    }
}

/// Images that containers mount.
#[derive(Debug)]
struct ImageVolumeMetrics {
    requested: IntCounter,
    succeeded: IntCounter,
    failed: IntCounter,
}

/// How a runtime's refusal begins if it cannot mount an image (`ErrImageVolumeMountFailed` of
/// `k8s.io/cri-api`).
const MOUNT_FAILED: &str = "ImageVolumeMountFailed";

impl ImageVolumeMetrics {
    fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            requested: factory.beta_counter(
                "kubelet_image_volume_requested_total",
                "Number of requested image volumes.",
            ),
            succeeded: factory.beta_counter(
                "kubelet_image_volume_mounted_succeed_total",
                "Number of successful image volume mounts.",
            ),
            failed: factory.beta_counter(
                "kubelet_image_volume_mounted_errors_total",
                "Number of failed image volume mounts.",
            ),
        }
    }

    fn mounted(&self, pod: &Pod, container: &Container, failure: Option<&str>) {
        let is_image = |volume: &str| {
            let volume = pod.spec.volume(volume);
            volume.is_some_and(|volume| matches!(volume.source, VolumeSource::Image { .. }))
        };
        let mounts = container.mounts.iter().map(|mount| &*mount.volume);
        let mounts: Vec<&str> = mounts.filter(|volume| is_image(volume)).collect();
        // A volume may be mounted several times.
        let volumes: BTreeSet<&str> = mounts.iter().copied().collect();
        self.requested.inc_by(volumes.len() as u64);
        let count = mounts.len() as u64;
        match failure {
            Some(failure) if failure.contains(MOUNT_FAILED) => self.failed.inc_by(count),
            _ => self.succeeded.inc_by(count),
        }
    }
}
