//! The gRPC services of the traits: each RPC is forwarded to the implementor, errors are converted
//! to statuses. Lists are also sent in pieces. RPCs that the traits do not have return
//! `Unimplemented`.

use std::sync::Arc;

use super::{events, pieces};

use rubelet_cri::{
    ImageService, RuntimeService,
    v1::{self, image_service_server, runtime_service_server},
};
use tokio::sync::watch;
use tonic::{Request, Response, Status, async_trait, codegen::BoxStream};

use crate::status::status_from;

/// Adapts a [`RuntimeService`] to the generated server.
pub(super) struct RuntimeRpcs {
    pub(super) service: Arc<dyn RuntimeService>,
    /// True once the server stops: endless streams must not delay it.
    pub(super) stopped: watch::Receiver<bool>,
}

/// Adapts an [`ImageService`] to the generated server.
pub(super) struct ImageRpcs {
    pub(super) service: Arc<dyn ImageService>,
}

macro_rules! rpcs {
    (
        { $($method:ident $request:ident $response:ident;)* }
        { $($list:ident $list_request:ident $list_response:ident;)* }
        $type:ident: $trait:path { $($by_hand:tt)* }
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
            $(async fn $list(
                &self,
                request: Request<v1::$list_request>,
            ) -> Result<Response<v1::$list_response>, Status> {
                let answer = self.service.$list(request.into_inner()).await;
                answer.map(Response::new).map_err(status_from)
            })*
            $($by_hand)*
        }
    };
}

rubelet_cri::runtime_methods! { rpcs! RuntimeRpcs: runtime_service_server::RuntimeService {
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
        let events = events::stream(Arc::clone(&self.service), self.stopped.clone());
        Ok(Response::new(events))
    }
} }

rubelet_cri::image_methods! { rpcs! ImageRpcs: image_service_server::ImageService {
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
