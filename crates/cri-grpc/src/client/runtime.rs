//! The runtime service over the connection.

use rubelet_cri::{CriResult, v1};

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
    list_pod_sandbox ListPodSandboxRequest ListPodSandboxResponse;
    create_container CreateContainerRequest CreateContainerResponse;
    start_container StartContainerRequest StartContainerResponse;
    stop_container StopContainerRequest StopContainerResponse;
    remove_container RemoveContainerRequest RemoveContainerResponse;
    list_containers ListContainersRequest ListContainersResponse;
    container_status ContainerStatusRequest ContainerStatusResponse;
    update_container_resources UpdateContainerResourcesRequest UpdateContainerResourcesResponse;
    reopen_container_log ReopenContainerLogRequest ReopenContainerLogResponse;
    exec_sync ExecSyncRequest ExecSyncResponse;
    container_stats ContainerStatsRequest ContainerStatsResponse;
    list_container_stats ListContainerStatsRequest ListContainerStatsResponse;
}
