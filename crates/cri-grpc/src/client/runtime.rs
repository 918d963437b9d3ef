//! The runtime service over the connection.

use rubelet_cri::{CriResult, EventStream, v1};

rpcs! {
    RuntimeService through runtime:
    version VersionRequest VersionResponse;
    status StatusRequest StatusResponse;
    runtime_config RuntimeConfigRequest RuntimeConfigResponse;
    update_runtime_config UpdateRuntimeConfigRequest UpdateRuntimeConfigResponse;
    run_pod_sandbox RunPodSandboxRequest RunPodSandboxResponse;
    stop_pod_sandbox StopPodSandboxRequest StopPodSandboxResponse;
    remove_pod_sandbox RemovePodSandboxRequest RemovePodSandboxResponse;
    pod_sandbox_status PodSandboxStatusRequest PodSandboxStatusResponse;
    create_container CreateContainerRequest CreateContainerResponse;
    start_container StartContainerRequest StartContainerResponse;
    stop_container StopContainerRequest StopContainerResponse;
    remove_container RemoveContainerRequest RemoveContainerResponse;
    container_status ContainerStatusRequest ContainerStatusResponse;
    update_container_resources UpdateContainerResourcesRequest UpdateContainerResourcesResponse;
    reopen_container_log ReopenContainerLogRequest ReopenContainerLogResponse;
    exec_sync ExecSyncRequest ExecSyncResponse;
    container_stats ContainerStatsRequest ContainerStatsResponse;
    list_container_stats ListContainerStatsRequest ListContainerStatsResponse;
    update_pod_sandbox_resources UpdatePodSandboxResourcesRequest UpdatePodSandboxResourcesResponse;
    pod_sandbox_stats PodSandboxStatsRequest PodSandboxStatsResponse;
    list_pod_sandbox_stats ListPodSandboxStatsRequest ListPodSandboxStatsResponse;
    list_metric_descriptors ListMetricDescriptorsRequest ListMetricDescriptorsResponse;
    list_pod_sandbox_metrics ListPodSandboxMetricsRequest ListPodSandboxMetricsResponse;
    exec ExecRequest ExecResponse;
    attach AttachRequest AttachResponse;
    port_forward PortForwardRequest PortForwardResponse;
    checkpoint_container CheckpointContainerRequest CheckpointContainerResponse;
    checkpoint_pod CheckpointPodRequest CheckpointPodResponse;
    restore_pod RestorePodRequest RestorePodResponse;
    {
        async fn list_pod_sandbox(
            &self,
            request: v1::ListPodSandboxRequest,
        ) -> CriResult<v1::ListPodSandboxResponse> {
            self.sandboxes(request).await
        }

        async fn list_containers(
            &self,
            request: v1::ListContainersRequest,
        ) -> CriResult<v1::ListContainersResponse> {
            self.containers(request).await
        }

        fn container_events(&self) -> EventStream {
            super::events::open(self.socket().to_owned())
        }
    }
}
