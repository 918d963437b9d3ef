//! The runtime service.

use async_trait::async_trait;
use rubelet_cri::{CriResult, EventStream, RuntimeService, v1};
use tokio::time::sleep;

use super::{events, exec, seconds};
use crate::{Sim, state::SimState};

#[async_trait]
impl RuntimeService for Sim {
    async fn version(&self, request: v1::VersionRequest) -> CriResult<v1::VersionResponse> {
        self.call_immediate(self.subject_of(&request), request, SimState::version)
            .await
    }

    async fn status(&self, request: v1::StatusRequest) -> CriResult<v1::StatusResponse> {
        self.call_immediate(self.subject_of(&request), request, SimState::status)
            .await
    }

    async fn runtime_config(
        &self,
        request: v1::RuntimeConfigRequest,
    ) -> CriResult<v1::RuntimeConfigResponse> {
        self.call_immediate(self.subject_of(&request), request, SimState::runtime_config)
            .await
    }

    async fn update_runtime_config(
        &self,
        request: v1::UpdateRuntimeConfigRequest,
    ) -> CriResult<v1::UpdateRuntimeConfigResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::update_runtime_config,
        )
        .await
    }

    async fn run_pod_sandbox(
        &self,
        request: v1::RunPodSandboxRequest,
    ) -> CriResult<v1::RunPodSandboxResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::run_pod_sandbox,
        )
        .await
    }

    async fn stop_pod_sandbox(
        &self,
        request: v1::StopPodSandboxRequest,
    ) -> CriResult<v1::StopPodSandboxResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::stop_pod_sandbox,
        )
        .await
    }

    async fn remove_pod_sandbox(
        &self,
        request: v1::RemovePodSandboxRequest,
    ) -> CriResult<v1::RemovePodSandboxResponse> {
        let effect = |request: v1::RemovePodSandboxRequest| async move {
            let id = request.pod_sandbox_id;
            let lag = self.with(|state| {
                state.empty_sandbox(&id);
                if state.removal_lag.is_zero() {
                    state.forget_sandbox(&id);
                }
                state.removal_lag
            });
            if !lag.is_zero() {
                sleep(lag).await;
                self.with(|state| state.forget_sandbox(&id));
            }
            Ok(v1::RemovePodSandboxResponse::default())
        };
        self.call(self.subject_of(&request), request, effect).await
    }

    async fn pod_sandbox_status(
        &self,
        request: v1::PodSandboxStatusRequest,
    ) -> CriResult<v1::PodSandboxStatusResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::pod_sandbox_status,
        )
        .await
    }

    async fn list_pod_sandbox(
        &self,
        request: v1::ListPodSandboxRequest,
    ) -> CriResult<v1::ListPodSandboxResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::list_pod_sandbox,
        )
        .await
    }

    async fn create_container(
        &self,
        request: v1::CreateContainerRequest,
    ) -> CriResult<v1::CreateContainerResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::create_container,
        )
        .await
    }

    async fn start_container(
        &self,
        request: v1::StartContainerRequest,
    ) -> CriResult<v1::StartContainerResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::start_container,
        )
        .await
    }

    async fn stop_container(
        &self,
        request: v1::StopContainerRequest,
    ) -> CriResult<v1::StopContainerResponse> {
        let effect = |request: v1::StopContainerRequest| async move {
            let id = request.container_id;
            let grace = seconds(request.timeout);
            let kill_at = self.with(|state| {
                if !grace.is_zero() {
                    state.term(&id);
                }
                state.clock.now() + grace
            });
            self.wait(|state| state.stopped(&id, kill_at)).await;
            // Other calls may wait for the same container's exit.
            self.with(|_| ());
            Ok(v1::StopContainerResponse::default())
        };
        self.call(self.subject_of(&request), request, effect).await
    }

    async fn remove_container(
        &self,
        request: v1::RemoveContainerRequest,
    ) -> CriResult<v1::RemoveContainerResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::remove_container,
        )
        .await
    }

    async fn list_containers(
        &self,
        request: v1::ListContainersRequest,
    ) -> CriResult<v1::ListContainersResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::list_containers,
        )
        .await
    }

    async fn container_status(
        &self,
        request: v1::ContainerStatusRequest,
    ) -> CriResult<v1::ContainerStatusResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::container_status,
        )
        .await
    }

    async fn update_container_resources(
        &self,
        request: v1::UpdateContainerResourcesRequest,
    ) -> CriResult<v1::UpdateContainerResourcesResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::update_container_resources,
        )
        .await
    }

    async fn reopen_container_log(
        &self,
        request: v1::ReopenContainerLogRequest,
    ) -> CriResult<v1::ReopenContainerLogResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::reopen_container_log,
        )
        .await
    }

    async fn exec_sync(&self, request: v1::ExecSyncRequest) -> CriResult<v1::ExecSyncResponse> {
        let effect = |request: v1::ExecSyncRequest| exec::run(self, request);
        self.call(self.subject_of(&request), request, effect).await
    }

    async fn container_stats(
        &self,
        request: v1::ContainerStatsRequest,
    ) -> CriResult<v1::ContainerStatsResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::container_stats,
        )
        .await
    }

    async fn list_container_stats(
        &self,
        request: v1::ListContainerStatsRequest,
    ) -> CriResult<v1::ListContainerStatsResponse> {
        self.call_immediate(
            self.subject_of(&request),
            request,
            SimState::list_container_stats,
        )
        .await
    }

    fn container_events(&self) -> EventStream {
        events::open(self)
    }
}
