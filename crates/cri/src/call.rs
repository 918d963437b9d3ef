//! The properties of each call: its name, its response and its deadline.
//!
//! Source of the deadlines: Kubernetes' cri-client. Most calls get the request timeout, those that
//! wait for something by design get that on top, and a pull has no deadline.

use std::time::Duration;

use crate::v1;

/// Deadline of reading one sandbox or container. Runtimes answer from memory: one that takes longer
/// hangs, and the pod must not wait for it as long as for a start.
const STATUS: Duration = Duration::from_secs(10);
/// Deadline of a list, or of the runtime's status.
const LIST: Duration = Duration::from_secs(30);

/// The deadlines of all calls, derived from one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// `runtimeRequestTimeout` of the configuration.
    pub request: Duration,
}

impl Default for Timeouts {
    /// Two minutes, the kubelet's default.
    fn default() -> Self {
        Self {
            request: Duration::from_secs(120),
        }
    }
}

/// A request message, and with it a call of one of the two services.
pub trait Call: Send + 'static {
    /// The RPC as the proto names it, such as `RunPodSandbox`.
    const NAME: &'static str;

    /// The message of a successful response.
    type Response: Send + 'static;

    /// Deadline from the request to the response; `None` means no limit.
    fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
        Some(timeouts.request)
    }

    /// The object that the call changes, if canceling it could leave a partial change: containerd
    /// may keep the process of a container whose start was canceled, and never remove it. `None`:
    /// the call only reads, or can be canceled safely.
    fn changes(&self) -> Option<ChangedObject> {
        None
    }
}

/// The object that a call changes in the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedObject {
    /// The pod of this UID gets a sandbox.
    Pod(String),
    /// The sandbox of this identifier, or a container to create in it.
    Sandbox(String),
    /// The container of this identifier.
    Container(String),
}

macro_rules! calls {
    ($($name:literal $request:ident $response:ident $({ $($own:item)* })?;)*) => {
        /// The names of all calls of both services.
        pub const CALLS: &[&str] = &[$($name),*];

        $(impl Call for v1::$request {
            const NAME: &'static str = $name;
            type Response = v1::$response;
            $($($own)*)?
        })*
    };
}

/// The object that a call changes, from a field of its request.
macro_rules! changes {
    ($kind:ident $field:ident) => {
        fn changes(&self) -> Option<ChangedObject> {
            Some(ChangedObject::$kind(self.$field.clone()))
        }
    };
}

calls! {
    "Version" VersionRequest VersionResponse;
    "Status" StatusRequest StatusResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            Some(timeouts.request.min(LIST))
        }
    };
    "RuntimeConfig" RuntimeConfigRequest RuntimeConfigResponse;
    "UpdateRuntimeConfig" UpdateRuntimeConfigRequest UpdateRuntimeConfigResponse;
    // It may have to pull the pause image and to set up a network.
    "RunPodSandbox" RunPodSandboxRequest RunPodSandboxResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            Some(timeouts.request.saturating_mul(2))
        }

        fn changes(&self) -> Option<ChangedObject> {
            let config = self.config.as_ref();
            let metadata = config.and_then(|config| config.metadata.as_ref());
            Some(ChangedObject::Pod(metadata.map_or_else(String::new, |of| of.uid.clone())))
        }
    };
    "StopPodSandbox" StopPodSandboxRequest StopPodSandboxResponse {
        changes!(Sandbox pod_sandbox_id);
    };
    "RemovePodSandbox" RemovePodSandboxRequest RemovePodSandboxResponse {
        changes!(Sandbox pod_sandbox_id);
    };
    "PodSandboxStatus" PodSandboxStatusRequest PodSandboxStatusResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            Some(timeouts.request.min(STATUS))
        }
    };
    "ListPodSandbox" ListPodSandboxRequest ListPodSandboxResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            Some(timeouts.request.min(LIST))
        }
    };
    "CreateContainer" CreateContainerRequest CreateContainerResponse {
        changes!(Sandbox pod_sandbox_id);
    };
    "StartContainer" StartContainerRequest StartContainerResponse {
        changes!(Container container_id);
    };
    // The runtime waits for the grace period before it kills.
    "StopContainer" StopContainerRequest StopContainerResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            Some(timeouts.request.saturating_add(seconds(self.timeout)))
        }

        changes!(Container container_id);
    };
    "RemoveContainer" RemoveContainerRequest RemoveContainerResponse {
        changes!(Container container_id);
    };
    "ListContainers" ListContainersRequest ListContainersResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            Some(timeouts.request.min(LIST))
        }
    };
    "ContainerStatus" ContainerStatusRequest ContainerStatusResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            Some(timeouts.request.min(STATUS))
        }
    };
    "UpdateContainerResources" UpdateContainerResourcesRequest UpdateContainerResourcesResponse {
        changes!(Container container_id);
    };
    "ReopenContainerLog" ReopenContainerLogRequest ReopenContainerLogResponse;
    // A command without a timeout has no bound, and neither has its call.
    "ExecSync" ExecSyncRequest ExecSyncResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            let limit = || timeouts.request.saturating_add(seconds(self.timeout));
            (self.timeout > 0).then(limit)
        }
    };
    // A stream: it ends when its reader drops it.
    "GetContainerEvents" GetEventsRequest ContainerEventResponse {
        fn deadline(&self, _: &Timeouts) -> Option<Duration> {
            None
        }
    };
    "ContainerStats" ContainerStatsRequest ContainerStatsResponse;
    "ListContainerStats" ListContainerStatsRequest ListContainerStatsResponse;
    "UpdatePodSandboxResources" UpdatePodSandboxResourcesRequest UpdatePodSandboxResourcesResponse {
        changes!(Sandbox pod_sandbox_id);
    };
    "PodSandboxStats" PodSandboxStatsRequest PodSandboxStatsResponse;
    "ListPodSandboxStats" ListPodSandboxStatsRequest ListPodSandboxStatsResponse;
    "ListMetricDescriptors" ListMetricDescriptorsRequest ListMetricDescriptorsResponse;
    "ListPodSandboxMetrics" ListPodSandboxMetricsRequest ListPodSandboxMetricsResponse;
    "Exec" ExecRequest ExecResponse;
    "Attach" AttachRequest AttachResponse;
    "PortForward" PortForwardRequest PortForwardResponse;
    "CheckpointContainer" CheckpointContainerRequest CheckpointContainerResponse;
    "CheckpointPod" CheckpointPodRequest CheckpointPodResponse;
    "RestorePod" RestorePodRequest RestorePodResponse;
    "ListImages" ListImagesRequest ListImagesResponse;
    "ImageStatus" ImageStatusRequest ImageStatusResponse;
    // As long as the registry takes; the caller can drop it.
    "PullImage" PullImageRequest PullImageResponse {
        fn deadline(&self, _: &Timeouts) -> Option<Duration> {
            None
        }
    };
    "RemoveImage" RemoveImageRequest RemoveImageResponse;
    "ImageFsInfo" ImageFsInfoRequest ImageFsInfoResponse;
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests;
