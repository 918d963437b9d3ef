//! What belongs to each call: its name, its answer and how long it may take.
//!
//! Source of the deadlines: Kubernetes' cri-client. Most calls get the request timeout, those that
//! wait for something by design get that on top, and a pull has no end of its own.

use std::time::Duration;

use crate::v1;

/// The longest time that reading one sandbox or container may take. Runtimes answer from memory:
/// one that needs longer hangs, and the pod must not wait for it as long as for a start.
const STATUS: Duration = Duration::from_secs(10);
/// The longest time that a list, or the state of the runtime as a whole, may take.
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

    /// The message of a successful answer.
    type Response: Send + 'static;

    /// How long this call may take from the request to the answer; `None` means for ever.
    fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
        Some(timeouts.request)
    }

    /// What the call changes, if breaking it off could leave that half changed: containerd may keep
    /// the process of a container whose start was broken off, and never remove it again. `None`: it
    /// reads, or can be broken off without harm.
    fn changes(&self) -> Option<Changed> {
        None
    }
}

/// What a call changes in the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// The pod of this UID gets a sandbox.
    Pod(String),
    /// The sandbox of this identifier, or a container that is to be made in it.
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

/// What a call changes that names it so in its field.
macro_rules! changes {
    ($kind:ident $field:ident) => {
        fn changes(&self) -> Option<Changed> {
            Some(Changed::$kind(self.$field.clone()))
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
    // It may have to pull the pause image and to set a network up.
    "RunPodSandbox" RunPodSandboxRequest RunPodSandboxResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            Some(timeouts.request.saturating_mul(2))
        }

        fn changes(&self) -> Option<Changed> {
            let config = self.config.as_ref();
            let metadata = config.and_then(|config| config.metadata.as_ref());
            Some(Changed::Pod(metadata.map_or_else(String::new, |of| of.uid.clone())))
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
    // A command without a timeout may run for ever, and so may its call.
    "ExecSync" ExecSyncRequest ExecSyncResponse {
        fn deadline(&self, timeouts: &Timeouts) -> Option<Duration> {
            let limit = || timeouts.request.saturating_add(seconds(self.timeout));
            (self.timeout > 0).then(limit)
        }
    };
    // A stream: it ends with whoever reads it.
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
    // As long as the registry takes; whoever asked for it can drop it.
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
mod tests {
    use super::*;

    fn stop(timeout: i64) -> v1::StopContainerRequest {
        v1::StopContainerRequest {
            timeout,
            ..Default::default()
        }
    }

    fn exec(timeout: i64) -> v1::ExecSyncRequest {
        v1::ExecSyncRequest {
            timeout,
            ..Default::default()
        }
    }

    #[test]
    fn a_call_that_waits_by_design_gets_that_time_on_top() {
        let allowed = Timeouts::default();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(
            v1::VersionRequest::default().deadline(&allowed),
            seconds(120)
        );
        assert_eq!(v1::StatusRequest::default().deadline(&allowed), seconds(30));
        let short = Timeouts {
            request: Duration::from_secs(5),
        };
        let status = v1::ContainerStatusRequest::default();
        assert_eq!(status.deadline(&allowed), seconds(10));
        assert_eq!(status.deadline(&short), seconds(5));
        assert_eq!(
            v1::RunPodSandboxRequest::default().deadline(&allowed),
            seconds(240)
        );
        assert_eq!(stop(30).deadline(&allowed), seconds(150));
        assert_eq!(stop(-1).deadline(&allowed), seconds(120));
        assert_eq!(exec(5).deadline(&allowed), seconds(125));
        assert_eq!(exec(0).deadline(&allowed), None);
        assert_eq!(v1::PullImageRequest::default().deadline(&allowed), None);
    }

    #[test]
    fn a_call_that_changes_something_names_it_and_others_can_be_broken_off() {
        let metadata = v1::PodSandboxMetadata {
            uid: "u1".to_owned(),
            ..Default::default()
        };
        let run = v1::RunPodSandboxRequest {
            config: Some(v1::PodSandboxConfig {
                metadata: Some(metadata),
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(run.changes(), Some(Changed::Pod("u1".to_owned())));
        let create = v1::CreateContainerRequest {
            pod_sandbox_id: "s1".to_owned(),
            ..Default::default()
        };
        assert_eq!(create.changes(), Some(Changed::Sandbox("s1".to_owned())));
        let start = v1::StartContainerRequest {
            container_id: "c1".to_owned(),
        };
        let container = Some(Changed::Container("c1".to_owned()));
        assert_eq!(start.changes(), container);
        assert_eq!(v1::PullImageRequest::default().changes(), None);
        assert_eq!(v1::ContainerStatusRequest::default().changes(), None);
        assert_eq!(exec(5).changes(), None);
    }
}
