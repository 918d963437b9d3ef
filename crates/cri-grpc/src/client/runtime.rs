//! The runtime service over the connection.

use rubelet_cri::{CriResult, EventStream, v1};

rubelet_cri::runtime_methods! { rpcs! RuntimeService through runtime {
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
} }
