//! How many pods there are, by what is to become of them.

use std::collections::BTreeMap;

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};
use rubelet_api::volume_plugin::VolumePlugin;

use super::{factory::MetricFactory, probe::Probe};

/// What the task of a pod does, with upstream's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkStage {
    /// It keeps the pod running.
    Sync,
    /// It ends the pod.
    Terminating,
    /// All containers have ended for good.
    Terminated,
}

impl WorkStage {
    const ALL: [Self; 3] = [Self::Sync, Self::Terminating, Self::Terminated];

    fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Terminating => "terminating",
            Self::Terminated => "terminated",
        }
    }
}

/// Who names a pod that has a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkOrigin {
    /// Its source.
    Desired {
        /// It does not come from the API server.
        is_static: bool,
    },
    /// Its source did, and does not any more.
    Orphan {
        /// It did not come from the API server.
        is_static: bool,
    },
    /// The runtime or its directory only: no source has named it since the agent started.
    RuntimeOnly,
}

impl WorkOrigin {
    const ALL: [Self; 5] = [
        Self::Desired { is_static: false },
        Self::Desired { is_static: true },
        Self::Orphan { is_static: false },
        Self::Orphan { is_static: true },
        Self::RuntimeOnly,
    ];

    /// The labels `config` and `static`.
    fn labels(self) -> [&'static str; 2] {
        match self {
            Self::Desired { is_static } => ["desired", static_label(is_static)],
            Self::Orphan { is_static } => ["orphan", static_label(is_static)],
            Self::RuntimeOnly => ["runtime_only", "unknown"],
        }
    }
}

/// Upstream's values of `static`.
fn static_label(is_static: bool) -> &'static str {
    if is_static { "true" } else { "" }
}

/// Numbers of pods and of their volumes at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Pods that sources name: of the API server, and static ones.
    pub desired: [usize; 2],
    /// Those of them that have neither ended nor been rejected, in the same order.
    pub active: [usize; 2],
    /// Static pods that the API server shows, or will.
    pub mirrored: usize,
    /// Ephemeral containers of desired pods.
    pub ephemeral_containers: usize,
    /// Pods with a task.
    pub working: BTreeMap<(WorkStage, WorkOrigin), usize>,
    /// Volumes that pods are to have, by plugin.
    pub desired_volumes: BTreeMap<VolumePlugin, usize>,
    /// Volumes that were made and not removed, by plugin.
    pub actual_volumes: BTreeMap<VolumePlugin, usize>,
}

/// How many pods there are.
#[derive(Debug)]
pub struct PodCountMetrics {
    desired: IntGaugeVec,
    active: IntGaugeVec,
    mirrored: IntGauge,
    ephemeral_containers: IntGauge,
    working: IntGaugeVec,
    volumes: IntGaugeVec,
    orphans: IntCounter,
    restarts: IntCounterVec,
    probe: Probe<PodCounts>,
}

impl PodCountMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        let this = Self {
            desired: factory.gauges(
                "kubelet_desired_pods",
                "The number of pods the kubelet is being instructed to run. static is true if the \
                 pod is not from the apiserver.",
                "static",
            ),
            active: factory.gauges(
                "kubelet_active_pods",
                "The number of pods the kubelet considers active and which are being considered \
                 when admitting new pods. static is true if the pod is not from the apiserver.",
                "static",
            ),
            mirrored: factory.gauge(
                "kubelet_mirror_pods",
                "The number of mirror pods the kubelet will try to create (one per admitted static \
                 pod)",
            ),
            ephemeral_containers: factory.gauge(
                "kubelet_managed_ephemeral_containers",
                "Current number of ephemeral containers in pods managed by this kubelet.",
            ),
            working: factory.gauges_by(
                "kubelet_working_pods",
                "Number of pods the kubelet is actually running, broken down by lifecycle phase, \
                 whether the pod is desired, orphaned, or runtime only (also orphaned), and whether \
                 the pod is static. An orphaned pod has been removed from local configuration or \
                 force deleted in the API and consumes resources that are not otherwise visible.",
                &["lifecycle", "config", "static"],
            ),
            volumes: factory.gauges_by(
                "volume_manager_total_volumes",
                "Number of volumes in Volume Manager",
                &["plugin_name", "state"],
            ),
            orphans: factory.counter(
                "kubelet_orphaned_runtime_pods_total",
                "Number of pods that have been detected in the container runtime without being \
                 already known to the pod worker. This typically indicates the kubelet was restarted \
                 while a pod was force deleted in the API or in the local configuration, which is \
                 unusual.",
            ),
            restarts: factory.counters(
                "kubelet_restarted_pods_total",
                "Number of pods that have been restarted because they were deleted and recreated \
                 with the same UID while the kubelet was watching them (common for static pods, \
                 extremely uncommon for API pods)",
                "static",
            ),
            probe: Probe::new(),
        };
        for is_static in [false, true] {
            this.restarts.with_label_values(&[static_label(is_static)]);
        }
        this.show(&PodCounts::default());
        this
    }

    /// Sets the source of the numbers, called at each scrape. It must not wait, and should hold no
    /// strong reference to these metrics.
    pub fn set_probe(&self, probe: impl Fn() -> PodCounts + Send + Sync + 'static) {
        self.probe.set(probe);
    }

    /// Updates the metrics that are read at each scrape.
    pub(super) fn look(&self) {
        if let Some(counts) = self.probe.read() {
            self.show(&counts);
        }
    }

    fn show(&self, counts: &PodCounts) {
        let gauge = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        for (vector, numbers) in [
            (&self.desired, counts.desired),
            (&self.active, counts.active),
        ] {
            for (is_static, number) in [false, true].into_iter().zip(numbers) {
                let labels = [static_label(is_static)];
                vector.with_label_values(&labels).set(gauge(number));
            }
        }
        self.mirrored.set(gauge(counts.mirrored));
        self.ephemeral_containers
            .set(gauge(counts.ephemeral_containers));
        for stage in WorkStage::ALL {
            for origin in WorkOrigin::ALL {
                let number = counts
                    .working
                    .get(&(stage, origin))
                    .copied()
                    .unwrap_or_default();
                let [config, is_static] = origin.labels();
                let labels = [stage.as_str(), config, is_static];
                self.working.with_label_values(&labels).set(gauge(number));
            }
        }
        // Upstream has no line for a plugin without volumes.
        self.volumes.reset();
        for (state, volumes) in [
            ("desired_state_of_world", &counts.desired_volumes),
            ("actual_state_of_world", &counts.actual_volumes),
        ] {
            for (plugin, number) in volumes {
                let labels = [plugin.as_str(), state];
                self.volumes.with_label_values(&labels).set(gauge(*number));
            }
        }
    }

    /// Counts a pod that is in the runtime although no source names it.
    pub fn orphan_found(&self) {
        self.orphans.inc();
    }

    /// Counts a pod that was removed and starts again with the same UID.
    pub fn restarted(&self, is_static: bool) {
        self.restarts
            .with_label_values(&[static_label(is_static)])
            .inc();
    }
}
