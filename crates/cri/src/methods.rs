//! The methods of the two services as rows for macros, so that code which forwards all of them in
//! the same way does not list them.
//!
//! A row is `method Request Response;`, the messages being those of [`v1`](crate::v1).

/// Expands to `NAME! { { rows } { rows of lists } GIVEN }` with the methods of
/// [`RuntimeService`](crate::RuntimeService). Lists of sandboxes and containers are separate: a
/// transport may send them in pieces. The event stream is not a row.
#[macro_export]
macro_rules! runtime_methods {
    ($name:ident! $($given:tt)*) => {
        $name! {
            {
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
            }
            {
                list_pod_sandbox ListPodSandboxRequest ListPodSandboxResponse;
                list_containers ListContainersRequest ListContainersResponse;
            }
            $($given)*
        }
    };
}

/// Expands to `NAME! { { rows } {} GIVEN }` with the methods of [`ImageService`](crate::ImageService).
#[macro_export]
macro_rules! image_methods {
    ($name:ident! $($given:tt)*) => {
        $name! {
            {
                list_images ListImagesRequest ListImagesResponse;
                image_status ImageStatusRequest ImageStatusResponse;
                pull_image PullImageRequest PullImageResponse;
                remove_image RemoveImageRequest RemoveImageResponse;
                image_fs_info ImageFsInfoRequest ImageFsInfoResponse;
            }
            {}
            $($given)*
        }
    };
}
