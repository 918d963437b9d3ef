//! The gRPC face of the traits: each RPC handed to the implementor, errors turned into statuses.
//! Lists are also sent in pieces. RPCs that the traits do not have answer `Unimplemented`.

use std::sync::Arc;

use super::{events, pieces};

use rubelet_cri::{
    ImageService, RuntimeService,
    v1::{self, image_service_server, runtime_service_server},
};
use tokio::sync::watch;
use tonic::{Request, Response, Status, async_trait, codegen::BoxStream};

use crate::status::status_from;

/// An implementor of [`RuntimeService`] as the generated server wants it.
pub(super) struct RuntimeRpcs {
    pub(super) service: Arc<dyn RuntimeService>,
    /// True once the server is to end: streams without an end of their own must not hold it up.
    pub(super) stopped: watch::Receiver<bool>,
}

/// An implementor of [`ImageService`] as the generated server wants it.
pub(super) struct ImageRpcs {
    pub(super) service: Arc<dyn ImageService>,
}

macro_rules! rpcs {
    (
        $type:ident: $trait:path { $($method:ident $request:ident $response:ident;)* }
        $({ $($by_hand:tt)* })?
    ) => {
        #[async_trait]
        impl $trait for $type {
            $(async fn $method(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                let answer = self.service.$method(request.into_inner()).await;
                answer.map(Response::new).map_err(status_from)
            })*
            $($($by_hand)*)?
        }
    };
}

rpcs! { RuntimeRpcs: runtime_service_server::RuntimeService {
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
} {
    async fn stream_pod_sandboxes(
        &self,
        request: Request<v1::StreamPodSandboxesRequest>,
    ) -> Result<Response<BoxStream<v1::StreamPodSandboxesResponse>>, Status> {
        let filter = request.into_inner().filter;
        let list = self.service.list_pod_sandbox(v1::ListPodSandboxRequest { filter }).await;
        let all = list.map_err(status_from)?.items;
        let piece = |pod_sandboxes| v1::StreamPodSandboxesResponse { pod_sandboxes };
        Ok(Response::new(pieces::stream(all, piece)))
    }

    async fn stream_containers(
        &self,
        request: Request<v1::StreamContainersRequest>,
    ) -> Result<Response<BoxStream<v1::StreamContainersResponse>>, Status> {
        let filter = request.into_inner().filter;
        let list = self.service.list_containers(v1::ListContainersRequest { filter }).await;
        let all = list.map_err(status_from)?.containers;
        let piece = |containers| v1::StreamContainersResponse { containers };
        Ok(Response::new(pieces::stream(all, piece)))
    }

    async fn stream_container_stats(
        &self,
        request: Request<v1::StreamContainerStatsRequest>,
    ) -> Result<Response<BoxStream<v1::StreamContainerStatsResponse>>, Status> {
        let filter = request.into_inner().filter;
        let list = self.service.list_container_stats(v1::ListContainerStatsRequest { filter }).await;
        let all = list.map_err(status_from)?.stats;
        let piece = |container_stats| v1::StreamContainerStatsResponse { container_stats };
        Ok(Response::new(pieces::stream(all, piece)))
    }

    async fn stream_pod_sandbox_stats(
        &self,
        request: Request<v1::StreamPodSandboxStatsRequest>,
    ) -> Result<Response<BoxStream<v1::StreamPodSandboxStatsResponse>>, Status> {
        let filter = request.into_inner().filter;
        let list = self.service.list_pod_sandbox_stats(v1::ListPodSandboxStatsRequest { filter }).await;
        let all = list.map_err(status_from)?.stats;
        let piece = |pod_sandbox_stats| v1::StreamPodSandboxStatsResponse { pod_sandbox_stats };
        Ok(Response::new(pieces::stream(all, piece)))
    }

    async fn stream_pod_sandbox_metrics(
        &self,
        _: Request<v1::StreamPodSandboxMetricsRequest>,
    ) -> Result<Response<BoxStream<v1::StreamPodSandboxMetricsResponse>>, Status> {
        let list = self.service.list_pod_sandbox_metrics(v1::ListPodSandboxMetricsRequest {}).await;
        let all = list.map_err(status_from)?.pod_metrics;
        let piece = |pod_sandbox_metrics| v1::StreamPodSandboxMetricsResponse { pod_sandbox_metrics };
        Ok(Response::new(pieces::stream(all, piece)))
    }

    async fn get_container_events(
        &self,
        _: Request<v1::GetEventsRequest>,
    ) -> Result<Response<BoxStream<v1::ContainerEventResponse>>, Status> {
        let events = self.service.container_events();
        Ok(Response::new(events::stream(events, self.stopped.clone())))
    }
} }

rpcs! { ImageRpcs: image_service_server::ImageService {
    list_images ListImagesRequest ListImagesResponse;
    image_status ImageStatusRequest ImageStatusResponse;
    pull_image PullImageRequest PullImageResponse;
    remove_image RemoveImageRequest RemoveImageResponse;
    image_fs_info ImageFsInfoRequest ImageFsInfoResponse;
} {
    async fn stream_images(
        &self,
        request: Request<v1::StreamImagesRequest>,
    ) -> Result<Response<BoxStream<v1::StreamImagesResponse>>, Status> {
        let filter = request.into_inner().filter;
        let list = self.service.list_images(v1::ListImagesRequest { filter }).await;
        let all = list.map_err(status_from)?.images;
        let piece = |images| v1::StreamImagesResponse { images };
        Ok(Response::new(pieces::stream(all, piece)))
    }
} }
