//! The runtime service: sandboxes and containers.

use async_trait::async_trait;

use crate::{Call, CriError, CriResult, EventStream, v1};

/// The RPCs of `runtime.v1.RuntimeService` (Kubernetes 1.37, api.proto). The variants that send a
/// list in pieces are an option of the transport.
///
/// Methods that an implementor omits return `Unimplemented`, like a runtime that is older than the
/// RPC. Dropping a returned future abandons the call; its effect may still happen.
#[async_trait]
pub trait RuntimeService: Send + Sync + 'static {
    /// Returns the runtime's name and its supported CRI versions.
    async fn version(&self, _request: v1::VersionRequest) -> CriResult<v1::VersionResponse> {
        Err(CriError::unimplemented(v1::VersionRequest::NAME))
    }

    /// Returns whether the runtime and its network are ready, and its handlers and features.
    async fn status(&self, _request: v1::StatusRequest) -> CriResult<v1::StatusResponse> {
        Err(CriError::unimplemented(v1::StatusRequest::NAME))
    }

    /// Returns the cgroup driver of the runtime.
    async fn runtime_config(
        &self,
        _request: v1::RuntimeConfigRequest,
    ) -> CriResult<v1::RuntimeConfigResponse> {
        Err(CriError::unimplemented(v1::RuntimeConfigRequest::NAME))
    }

    /// Passes the node's pod CIDR to the runtime.
    async fn update_runtime_config(
        &self,
        _request: v1::UpdateRuntimeConfigRequest,
    ) -> CriResult<v1::UpdateRuntimeConfigResponse> {
        Err(CriError::unimplemented(
            v1::UpdateRuntimeConfigRequest::NAME,
        ))
    }

    /// Creates and starts a sandbox; it is ready when this returns.
    async fn run_pod_sandbox(
        &self,
        _request: v1::RunPodSandboxRequest,
    ) -> CriResult<v1::RunPodSandboxResponse> {
        Err(CriError::unimplemented(v1::RunPodSandboxRequest::NAME))
    }

    /// Kills the remaining processes in the sandbox and removes its network. Succeeds if it is
    /// stopped or gone.
    async fn stop_pod_sandbox(
        &self,
        _request: v1::StopPodSandboxRequest,
    ) -> CriResult<v1::StopPodSandboxResponse> {
        Err(CriError::unimplemented(v1::StopPodSandboxRequest::NAME))
    }

    /// Removes the sandbox and its containers. Succeeds if it does not exist.
    async fn remove_pod_sandbox(
        &self,
        _request: v1::RemovePodSandboxRequest,
    ) -> CriResult<v1::RemovePodSandboxResponse> {
        Err(CriError::unimplemented(v1::RemovePodSandboxRequest::NAME))
    }

    /// State, network and labels of one sandbox; `NotFound` if it does not exist.
    async fn pod_sandbox_status(
        &self,
        _request: v1::PodSandboxStatusRequest,
    ) -> CriResult<v1::PodSandboxStatusResponse> {
        Err(CriError::unimplemented(v1::PodSandboxStatusRequest::NAME))
    }

    /// The sandboxes that match the filter, or all.
    async fn list_pod_sandbox(
        &self,
        _request: v1::ListPodSandboxRequest,
    ) -> CriResult<v1::ListPodSandboxResponse> {
        Err(CriError::unimplemented(v1::ListPodSandboxRequest::NAME))
    }

    /// Creates a container in a sandbox without starting it.
    async fn create_container(
        &self,
        _request: v1::CreateContainerRequest,
    ) -> CriResult<v1::CreateContainerResponse> {
        Err(CriError::unimplemented(v1::CreateContainerRequest::NAME))
    }

    /// Starts a created container. A failure leaves it exited with reason `StartError`.
    async fn start_container(
        &self,
        _request: v1::StartContainerRequest,
    ) -> CriResult<v1::StartContainerResponse> {
        Err(CriError::unimplemented(v1::StartContainerRequest::NAME))
    }

    /// Sends the stop signal, waits up to `timeout` seconds, kills. Succeeds if it is stopped or
    /// gone.
    async fn stop_container(
        &self,
        _request: v1::StopContainerRequest,
    ) -> CriResult<v1::StopContainerResponse> {
        Err(CriError::unimplemented(v1::StopContainerRequest::NAME))
    }

    /// Removes a container, killing it first if it runs. Succeeds if it does not exist.
    async fn remove_container(
        &self,
        _request: v1::RemoveContainerRequest,
    ) -> CriResult<v1::RemoveContainerResponse> {
        Err(CriError::unimplemented(v1::RemoveContainerRequest::NAME))
    }

    /// The containers that match the filter, or all.
    async fn list_containers(
        &self,
        _request: v1::ListContainersRequest,
    ) -> CriResult<v1::ListContainersResponse> {
        Err(CriError::unimplemented(v1::ListContainersRequest::NAME))
    }

    /// State, exit code, times and configuration of one container; `NotFound` if it does not exist.
    async fn container_status(
        &self,
        _request: v1::ContainerStatusRequest,
    ) -> CriResult<v1::ContainerStatusResponse> {
        Err(CriError::unimplemented(v1::ContainerStatusRequest::NAME))
    }

    /// Changes the resource limits of an existing container.
    async fn update_container_resources(
        &self,
        _request: v1::UpdateContainerResourcesRequest,
    ) -> CriResult<v1::UpdateContainerResourcesResponse> {
        Err(CriError::unimplemented(
            v1::UpdateContainerResourcesRequest::NAME,
        ))
    }

    /// Reopens the log file of a running container after a rotation.
    async fn reopen_container_log(
        &self,
        _request: v1::ReopenContainerLogRequest,
    ) -> CriResult<v1::ReopenContainerLogResponse> {
        Err(CriError::unimplemented(v1::ReopenContainerLogRequest::NAME))
    }

    /// Runs a command in a container and returns its output and exit code. `timeout` is in seconds,
    /// 0 means none.
    async fn exec_sync(&self, _request: v1::ExecSyncRequest) -> CriResult<v1::ExecSyncResponse> {
        Err(CriError::unimplemented(v1::ExecSyncRequest::NAME))
    }

    /// CPU, memory and disk use of one container; `NotFound` if it does not exist.
    async fn container_stats(
        &self,
        _request: v1::ContainerStatsRequest,
    ) -> CriResult<v1::ContainerStatsResponse> {
        Err(CriError::unimplemented(v1::ContainerStatsRequest::NAME))
    }

    /// CPU, memory and disk use of the containers that match the filter.
    async fn list_container_stats(
        &self,
        _request: v1::ListContainerStatsRequest,
    ) -> CriResult<v1::ListContainerStatsResponse> {
        Err(CriError::unimplemented(v1::ListContainerStatsRequest::NAME))
    }

    /// Changes the resources of an existing sandbox, before or after those of its containers.
    async fn update_pod_sandbox_resources(
        &self,
        _request: v1::UpdatePodSandboxResourcesRequest,
    ) -> CriResult<v1::UpdatePodSandboxResourcesResponse> {
        Err(CriError::unimplemented(
            v1::UpdatePodSandboxResourcesRequest::NAME,
        ))
    }

    /// CPU, memory, network and processes of one sandbox; `NotFound` if it does not exist.
    async fn pod_sandbox_stats(
        &self,
        _request: v1::PodSandboxStatsRequest,
    ) -> CriResult<v1::PodSandboxStatsResponse> {
        Err(CriError::unimplemented(v1::PodSandboxStatsRequest::NAME))
    }

    /// CPU, memory, network and processes of the sandboxes that match the filter.
    async fn list_pod_sandbox_stats(
        &self,
        _request: v1::ListPodSandboxStatsRequest,
    ) -> CriResult<v1::ListPodSandboxStatsResponse> {
        Err(CriError::unimplemented(
            v1::ListPodSandboxStatsRequest::NAME,
        ))
    }

    /// Which metrics [`list_pod_sandbox_metrics`](Self::list_pod_sandbox_metrics) may hold.
    async fn list_metric_descriptors(
        &self,
        _request: v1::ListMetricDescriptorsRequest,
    ) -> CriResult<v1::ListMetricDescriptorsResponse> {
        Err(CriError::unimplemented(
            v1::ListMetricDescriptorsRequest::NAME,
        ))
    }

    /// Raw metrics of all sandboxes and their containers.
    async fn list_pod_sandbox_metrics(
        &self,
        _request: v1::ListPodSandboxMetricsRequest,
    ) -> CriResult<v1::ListPodSandboxMetricsResponse> {
        Err(CriError::unimplemented(
            v1::ListPodSandboxMetricsRequest::NAME,
        ))
    }

    /// Prepares a streaming session that runs a command.
    async fn exec(&self, _request: v1::ExecRequest) -> CriResult<v1::ExecResponse> {
        Err(CriError::unimplemented(v1::ExecRequest::NAME))
    }

    /// Prepares a streaming session with a running container.
    async fn attach(&self, _request: v1::AttachRequest) -> CriResult<v1::AttachResponse> {
        Err(CriError::unimplemented(v1::AttachRequest::NAME))
    }

    /// Prepares a streaming session that forwards ports of a sandbox.
    async fn port_forward(
        &self,
        _request: v1::PortForwardRequest,
    ) -> CriResult<v1::PortForwardResponse> {
        Err(CriError::unimplemented(v1::PortForwardRequest::NAME))
    }

    /// Writes the state of a running container into a file.
    async fn checkpoint_container(
        &self,
        _request: v1::CheckpointContainerRequest,
    ) -> CriResult<v1::CheckpointContainerResponse> {
        Err(CriError::unimplemented(
            v1::CheckpointContainerRequest::NAME,
        ))
    }

    /// Writes the state of a sandbox with its containers into a file.
    async fn checkpoint_pod(
        &self,
        _request: v1::CheckpointPodRequest,
    ) -> CriResult<v1::CheckpointPodResponse> {
        Err(CriError::unimplemented(v1::CheckpointPodRequest::NAME))
    }

    /// Creates a sandbox with its containers from such a file.
    async fn restore_pod(
        &self,
        _request: v1::RestorePodRequest,
    ) -> CriResult<v1::RestorePodResponse> {
        Err(CriError::unimplemented(v1::RestorePodRequest::NAME))
    }

    /// Events of the runtime from now on, until the stream is dropped. The request is sent when the
    /// stream is first polled.
    ///
    /// No message reports when the subscription took effect, and lost events are not repeated: each
    /// start of a stream is a gap, which only a list can close. A runtime without events ends the
    /// stream with `Unimplemented`, or at once.
    fn container_events(&self) -> EventStream {
        let none = Err(CriError::unimplemented(v1::GetEventsRequest::NAME));
        Box::pin(futures_util::stream::iter([none]))
    }
}
