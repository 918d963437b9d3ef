//! Metrics of calls to the runtime.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, exponential_buckets};

use super::factory::MetricFactory;

/// Metrics of calls to the runtime, by upstream's operation names.
#[derive(Debug)]
pub struct RuntimeMetrics {
    operations: IntCounterVec,
    durations: HistogramVec,
    errors: IntCounterVec,
}

impl RuntimeMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        let label = "operation_type";
        let buckets =
            exponential_buckets(0.005, 2.5, 14).expect("a positive start that grows 14 times");
        Self {
            operations: factory.counters(
                "kubelet_runtime_operations_total",
                "Cumulative number of runtime operations by operation type.",
                label,
            ),
            durations: factory.histograms(
                "kubelet_runtime_operations_duration_seconds",
                "Duration in seconds of runtime operations. Broken down by operation type.",
                buckets,
                label,
            ),
            errors: factory.counters(
                "kubelet_runtime_operations_errors_total",
                "Cumulative number of runtime operation errors by operation type.",
                label,
            ),
        }
    }

    /// Counts a call that ended. `call` is its name in the proto, such as `CreateContainer`.
    pub fn call_ended(&self, call: &str, took: Duration, is_ok: bool) {
        let operation = [operation_type(call)];
        self.operations.with_label_values(&operation).inc();
        let duration = self.durations.with_label_values(&operation);
        duration.observe(took.as_secs_f64());
        if !is_ok {
            self.errors.with_label_values(&operation).inc();
        }
    }
}

/// Upstream's name of a call (`pkg/kubelet/kuberuntime/instrumented_services.go`); the call's own
/// name if upstream never makes it.
#[must_use]
pub fn operation_type(call: &str) -> &str {
    match call {
        "Version" => "version",
        "Status" => "status",
        "RuntimeConfig" => "runtime_config",
        "UpdateRuntimeConfig" => "update_runtime_config",
        "RunPodSandbox" => "run_podsandbox",
        "StopPodSandbox" => "stop_podsandbox",
        "RemovePodSandbox" => "remove_podsandbox",
        "PodSandboxStatus" => "podsandbox_status",
        // Upstream counts both forms of a list under one name.
        "ListPodSandbox" | "StreamPodSandboxes" => "list_podsandbox",
        "CreateContainer" => "create_container",
        "StartContainer" => "start_container",
        "StopContainer" => "stop_container",
        "RemoveContainer" => "remove_container",
        "ListContainers" | "StreamContainers" => "list_containers",
        "ContainerStatus" => "container_status",
        "UpdateContainerResources" => "update_container",
        "ReopenContainerLog" => "reopen_container_log",
        "ExecSync" => "exec_sync",
        "GetContainerEvents" => "get_container_events",
        "ContainerStats" => "container_stats",
        "ListContainerStats" => "list_container_stats",
        "UpdatePodSandboxResources" => "update_podsandbox_resources",
        "PodSandboxStats" => "podsandbox_stats",
        "ListPodSandboxStats" => "list_podsandbox_stats",
        "ListMetricDescriptors" => "list_metric_descriptors",
        "ListPodSandboxMetrics" => "list_podsandbox_metrics",
        "Exec" => "exec",
        "Attach" => "attach",
        "PortForward" => "port_forward",
        "CheckpointContainer" => "checkpoint_container",
        "CheckpointPod" => "checkpoint_pod",
        "RestorePod" => "restore_pod",
        "ListImages" => "list_images",
        "ImageStatus" => "image_status",
        "PullImage" => "pull_image",
        "RemoveImage" => "remove_image",
        "ImageFsInfo" => "image_fs_info",
        other => other,
    }
}
