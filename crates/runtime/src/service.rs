//! The CRI runtime service: dispatches each call.

use std::{cmp::Reverse, sync::Arc};

use async_trait::async_trait;
use rubelet_cri::{Call, CriErrorKind, CriResult, EventStream, RuntimeService, v1};
use rubelet_runtime_plan::{
    cri_status::{
        container_item, container_status, lists_container, lists_sandbox, sandbox_item,
        sandbox_status,
    },
    state::{ContainerCall, SandboxCall},
};

use crate::{
    EmbeddedRuntime, clock,
    container::{create, exec, remove, start, stop, update},
    engine::run_uncancellable,
    error::{Result, RuntimeError},
    runtime_status, sandbox,
    sessions::urls,
    stats,
};

/// The answer to the call `C`.
fn answer<C: Call>(outcome: Result<C::Response>) -> CriResult<C::Response> {
    outcome.map_err(RuntimeError::of::<C>)
}

#[async_trait]
impl RuntimeService for EmbeddedRuntime {
    async fn version(&self, _: v1::VersionRequest) -> CriResult<v1::VersionResponse> {
        Ok(runtime_status::version(&self.engine))
    }

    async fn status(&self, request: v1::StatusRequest) -> CriResult<v1::StatusResponse> {
        Ok(runtime_status::status(&self.engine, request.verbose).await)
    }

    async fn runtime_config(
        &self,
        _: v1::RuntimeConfigRequest,
    ) -> CriResult<v1::RuntimeConfigResponse> {
        Ok(runtime_status::config(&self.engine))
    }

    async fn update_runtime_config(
        &self,
        request: v1::UpdateRuntimeConfigRequest,
    ) -> CriResult<v1::UpdateRuntimeConfigResponse> {
        let engine = Arc::clone(&self.engine);
        let updated =
            run_uncancellable(async move { runtime_status::update(&engine, request).await }).await;
        answer::<v1::UpdateRuntimeConfigRequest>(
            updated.map(|()| v1::UpdateRuntimeConfigResponse {}),
        )
    }

    async fn run_pod_sandbox(
        &self,
        request: v1::RunPodSandboxRequest,
    ) -> CriResult<v1::RunPodSandboxResponse> {
        let made = run_uncancellable(sandbox::run::run(Arc::clone(&self.engine), request)).await;
        answer::<v1::RunPodSandboxRequest>(
            made.map(|pod_sandbox_id| v1::RunPodSandboxResponse { pod_sandbox_id }),
        )
    }

    async fn stop_pod_sandbox(
        &self,
        request: v1::StopPodSandboxRequest,
    ) -> CriResult<v1::StopPodSandboxResponse> {
        let engine = Arc::clone(&self.engine);
        let stopped = run_uncancellable(sandbox::stop::stop(engine, request.pod_sandbox_id)).await;
        answer::<v1::StopPodSandboxRequest>(stopped.map(|()| v1::StopPodSandboxResponse {}))
    }

    async fn remove_pod_sandbox(
        &self,
        request: v1::RemovePodSandboxRequest,
    ) -> CriResult<v1::RemovePodSandboxResponse> {
        let engine = Arc::clone(&self.engine);
        let removed =
            run_uncancellable(sandbox::remove::remove(engine, request.pod_sandbox_id)).await;
        answer::<v1::RemovePodSandboxRequest>(removed.map(|()| v1::RemovePodSandboxResponse {}))
    }

    async fn pod_sandbox_status(
        &self,
        request: v1::PodSandboxStatusRequest,
    ) -> CriResult<v1::PodSandboxStatusResponse> {
        let id = &request.pod_sandbox_id;
        let found = self.engine.sandbox(SandboxCall::Status, id);
        let found = found.map_err(RuntimeError::of::<v1::PodSandboxStatusRequest>)?;
        let missing = || RuntimeError::sandbox_not_found(id);
        let sandbox = found.ok_or_else(|| missing().of::<v1::PodSandboxStatusRequest>())?;
        let record = sandbox.record();
        let members = sandbox.members();
        let statuses = members.iter().map(|member| member.record());
        let mut statuses: Vec<_> = statuses
            .filter_map(|record| container_status(&record))
            .collect();
        // With evented PLEG the kubelet takes the first status of a name for the present one.
        statuses.sort_by_key(|status| Reverse(status.created_at));
        Ok(v1::PodSandboxStatusResponse {
            status: sandbox_status(&record),
            info: if request.verbose {
                runtime_status::sandbox(&self.engine, &sandbox)
            } else {
                Default::default()
            },
            containers_statuses: statuses,
            timestamp: clock::now_ns(),
        })
    }

    async fn list_pod_sandbox(
        &self,
        request: v1::ListPodSandboxRequest,
    ) -> CriResult<v1::ListPodSandboxResponse> {
        let filter = request.filter.as_ref();
        let all = self.engine.table.sandboxes();
        let records = all.iter().map(|sandbox| sandbox.record());
        let matching = records.filter(|record| lists_sandbox(filter, record));
        Ok(v1::ListPodSandboxResponse {
            items: matching
                .filter_map(|record| sandbox_item(&record))
                .collect(),
        })
    }

    async fn create_container(
        &self,
        request: v1::CreateContainerRequest,
    ) -> CriResult<v1::CreateContainerResponse> {
        let made = run_uncancellable(create::create(Arc::clone(&self.engine), request)).await;
        answer::<v1::CreateContainerRequest>(
            made.map(|container_id| v1::CreateContainerResponse { container_id }),
        )
    }

    async fn start_container(
        &self,
        request: v1::StartContainerRequest,
    ) -> CriResult<v1::StartContainerResponse> {
        let engine = Arc::clone(&self.engine);
        let started = run_uncancellable(start::start(engine, request.container_id)).await;
        answer::<v1::StartContainerRequest>(started.map(|()| v1::StartContainerResponse {}))
    }

    async fn stop_container(
        &self,
        request: v1::StopContainerRequest,
    ) -> CriResult<v1::StopContainerResponse> {
        let engine = Arc::clone(&self.engine);
        let stopped = stop::stop(engine, request.container_id, request.timeout);
        let stopped = run_uncancellable(stopped).await;
        answer::<v1::StopContainerRequest>(stopped.map(|()| v1::StopContainerResponse {}))
    }

    async fn remove_container(
        &self,
        request: v1::RemoveContainerRequest,
    ) -> CriResult<v1::RemoveContainerResponse> {
        let engine = Arc::clone(&self.engine);
        let removed = run_uncancellable(remove::remove(engine, request.container_id)).await;
        answer::<v1::RemoveContainerRequest>(removed.map(|()| v1::RemoveContainerResponse {}))
    }

    async fn list_containers(
        &self,
        request: v1::ListContainersRequest,
    ) -> CriResult<v1::ListContainersResponse> {
        let filter = request.filter.as_ref();
        let all = self.engine.table.containers();
        let records = all.iter().map(|container| container.record());
        let matching = records.filter(|record| lists_container(filter, record));
        Ok(v1::ListContainersResponse {
            containers: matching
                .filter_map(|record| container_item(&record))
                .collect(),
        })
    }

    async fn container_status(
        &self,
        request: v1::ContainerStatusRequest,
    ) -> CriResult<v1::ContainerStatusResponse> {
        let id = &request.container_id;
        let found = self.engine.container(ContainerCall::Status, id);
        let found = found.map_err(RuntimeError::of::<v1::ContainerStatusRequest>)?;
        let missing = || RuntimeError::container_not_found(id);
        let container = found.ok_or_else(|| missing().of::<v1::ContainerStatusRequest>())?;
        Ok(v1::ContainerStatusResponse {
            status: container_status(&container.record()),
            info: if request.verbose {
                runtime_status::container(&self.engine, &container).await
            } else {
                Default::default()
            },
        })
    }

    async fn update_container_resources(
        &self,
        request: v1::UpdateContainerResourcesRequest,
    ) -> CriResult<v1::UpdateContainerResourcesResponse> {
        let updated = run_uncancellable(update::update(Arc::clone(&self.engine), request)).await;
        answer::<v1::UpdateContainerResourcesRequest>(
            updated.map(|()| v1::UpdateContainerResourcesResponse {}),
        )
    }

    async fn update_pod_sandbox_resources(
        &self,
        request: v1::UpdatePodSandboxResourcesRequest,
    ) -> CriResult<v1::UpdatePodSandboxResourcesResponse> {
        let updated = update::update_sandbox(&self.engine, &request);
        answer::<v1::UpdatePodSandboxResourcesRequest>(
            updated.map(|()| v1::UpdatePodSandboxResourcesResponse {}),
        )
    }

    async fn reopen_container_log(
        &self,
        request: v1::ReopenContainerLogRequest,
    ) -> CriResult<v1::ReopenContainerLogResponse> {
        let engine = Arc::clone(&self.engine);
        let reopened = run_uncancellable(exec::reopen_log(engine, request.container_id)).await;
        answer::<v1::ReopenContainerLogRequest>(
            reopened.map(|()| v1::ReopenContainerLogResponse {}),
        )
    }

    /// A command whose caller goes away is killed, since its exit code would be lost.
    async fn exec_sync(&self, request: v1::ExecSyncRequest) -> CriResult<v1::ExecSyncResponse> {
        answer::<v1::ExecSyncRequest>(exec::exec_sync(Arc::clone(&self.engine), request).await)
    }

    async fn exec(&self, request: v1::ExecRequest) -> CriResult<v1::ExecResponse> {
        urls::exec(self, request).await
    }

    async fn attach(&self, request: v1::AttachRequest) -> CriResult<v1::AttachResponse> {
        urls::attach(self, request).await
    }

    async fn port_forward(
        &self,
        request: v1::PortForwardRequest,
    ) -> CriResult<v1::PortForwardResponse> {
        urls::port_forward(self, request).await
    }

    /// Checkpoints need CRIU, which neither this runtime nor its shims use.
    async fn checkpoint_container(
        &self,
        _: v1::CheckpointContainerRequest,
    ) -> CriResult<v1::CheckpointContainerResponse> {
        answer::<v1::CheckpointContainerRequest>(Err(RuntimeError::new(
            CriErrorKind::Unimplemented,
            "the embedded runtime cannot checkpoint containers",
        )))
    }

    async fn container_stats(
        &self,
        request: v1::ContainerStatsRequest,
    ) -> CriResult<v1::ContainerStatsResponse> {
        let stats = stats::container(&self.engine, &request.container_id).await;
        answer::<v1::ContainerStatsRequest>(
            stats.map(|stats| v1::ContainerStatsResponse { stats: Some(stats) }),
        )
    }

    async fn list_container_stats(
        &self,
        request: v1::ListContainerStatsRequest,
    ) -> CriResult<v1::ListContainerStatsResponse> {
        let stats = stats::containers(&self.engine, request.filter.as_ref()).await;
        Ok(v1::ListContainerStatsResponse { stats })
    }

    async fn pod_sandbox_stats(
        &self,
        request: v1::PodSandboxStatsRequest,
    ) -> CriResult<v1::PodSandboxStatsResponse> {
        let stats = stats::sandbox(&self.engine, &request.pod_sandbox_id).await;
        answer::<v1::PodSandboxStatsRequest>(
            stats.map(|stats| v1::PodSandboxStatsResponse { stats: Some(stats) }),
        )
    }

    async fn list_pod_sandbox_stats(
        &self,
        request: v1::ListPodSandboxStatsRequest,
    ) -> CriResult<v1::ListPodSandboxStatsResponse> {
        let stats = stats::sandboxes(&self.engine, request.filter.as_ref()).await;
        Ok(v1::ListPodSandboxStatsResponse { stats })
    }

    async fn list_metric_descriptors(
        &self,
        _: v1::ListMetricDescriptorsRequest,
    ) -> CriResult<v1::ListMetricDescriptorsResponse> {
        Ok(v1::ListMetricDescriptorsResponse {
            descriptors: stats::metrics::descriptors(),
        })
    }

    async fn list_pod_sandbox_metrics(
        &self,
        _: v1::ListPodSandboxMetricsRequest,
    ) -> CriResult<v1::ListPodSandboxMetricsResponse> {
        let pod_metrics = stats::raw(&self.engine).await;
        Ok(v1::ListPodSandboxMetricsResponse { pod_metrics })
    }

    fn container_events(&self) -> EventStream {
        self.engine.events.subscribe()
    }
}
