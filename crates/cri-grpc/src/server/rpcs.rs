//! The gRPC face of the traits: each RPC handed to the implementor, errors turned into statuses.
//! RPCs that the traits do not have answer `Unimplemented`.

use std::sync::Arc;

use rubelet_cri::{
    ImageService, RuntimeService,
    v1::{self, image_service_server, runtime_service_server},
};
use tonic::{Request, Response, Status, async_trait};

use crate::status::status_from;

/// An implementor of [`RuntimeService`] as the generated server wants it.
pub(super) struct RuntimeRpcs(pub(super) Arc<dyn RuntimeService>);

/// An implementor of [`ImageService`] as the generated server wants it.
pub(super) struct ImageRpcs(pub(super) Arc<dyn ImageService>);

macro_rules! rpcs {
    ($type:ident: $trait:path { $($method:ident $request:ident $response:ident;)* }) => {
        #[async_trait]
        impl $trait for $type {
            $(async fn $method(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                self.0.$method(request.into_inner()).await.map(Response::new).map_err(status_from)
            })*
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
} }

rpcs! { ImageRpcs: image_service_server::ImageService {
    list_images ListImagesRequest ListImagesResponse;
    image_status ImageStatusRequest ImageStatusResponse;
    pull_image PullImageRequest PullImageResponse;
    remove_image RemoveImageRequest RemoveImageResponse;
    image_fs_info ImageFsInfoRequest ImageFsInfoResponse;
} }
