//! The RPCs of CRI v1, and what the proxy decodes of each.

/// Kind of an RPC's messages, as far as faults depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A unary response that is not decoded.
    Unary,
    /// The list of sandboxes.
    Sandboxes,
    /// The list of containers.
    Containers,
    /// The status of one sandbox.
    SandboxStatus,
    /// The status of one container.
    ContainerStatus,
    /// The stream of events.
    Events,
    /// The list of sandboxes, as a stream of chunks.
    SandboxChunks,
    /// The list of containers, as a stream of chunks.
    ContainerChunks,
    /// Another list as a stream of chunks, which are not decoded.
    Chunks,
}

impl Shape {
    /// Whether the response is a stream of messages.
    #[must_use]
    pub(crate) fn is_stream(self) -> bool {
        matches!(
            self,
            Self::Events | Self::SandboxChunks | Self::ContainerChunks | Self::Chunks
        )
    }

    /// Whether the response, or each of its messages, is a list of sandboxes or containers.
    #[must_use]
    pub(crate) fn is_list(self) -> bool {
        matches!(
            self,
            Self::Sandboxes | Self::Containers | Self::SandboxChunks | Self::ContainerChunks
        )
    }
}

/// One RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rpc {
    /// Its name in the proto.
    pub(crate) name: &'static str,
    /// Kind of its messages.
    pub(crate) shape: Shape,
    /// Whether its request or its messages identify a container, a sandbox or a pod.
    pub(crate) has_subject: bool,
}

const fn rpc(name: &'static str, shape: Shape, has_subject: bool) -> Rpc {
    Rpc {
        name,
        shape,
        has_subject,
    }
}

/// All RPCs of both services (Kubernetes 1.37, api.proto).
pub(crate) const RPCS: &[Rpc] = &[
    rpc("Version", Shape::Unary, false),
    rpc("Status", Shape::Unary, false),
    rpc("RuntimeConfig", Shape::Unary, false),
    rpc("UpdateRuntimeConfig", Shape::Unary, false),
    rpc("RunPodSandbox", Shape::Unary, true),
    rpc("StopPodSandbox", Shape::Unary, true),
    rpc("RemovePodSandbox", Shape::Unary, true),
    rpc("PodSandboxStatus", Shape::SandboxStatus, true),
    rpc("ListPodSandbox", Shape::Sandboxes, true),
    rpc("StreamPodSandboxes", Shape::SandboxChunks, true),
    rpc("CreateContainer", Shape::Unary, true),
    rpc("StartContainer", Shape::Unary, true),
    rpc("StopContainer", Shape::Unary, true),
    rpc("RemoveContainer", Shape::Unary, true),
    rpc("ListContainers", Shape::Containers, true),
    rpc("StreamContainers", Shape::ContainerChunks, true),
    rpc("ContainerStatus", Shape::ContainerStatus, true),
    rpc("UpdateContainerResources", Shape::Unary, true),
    rpc("ReopenContainerLog", Shape::Unary, true),
    rpc("ExecSync", Shape::Unary, true),
    rpc("Exec", Shape::Unary, true),
    rpc("Attach", Shape::Unary, true),
    rpc("PortForward", Shape::Unary, true),
    rpc("ContainerStats", Shape::Unary, true),
    rpc("ListContainerStats", Shape::Unary, false),
    rpc("StreamContainerStats", Shape::Chunks, false),
    rpc("PodSandboxStats", Shape::Unary, true),
    rpc("ListPodSandboxStats", Shape::Unary, false),
    rpc("StreamPodSandboxStats", Shape::Chunks, false),
    rpc("UpdatePodSandboxResources", Shape::Unary, true),
    rpc("CheckpointContainer", Shape::Unary, true),
    rpc("CheckpointPod", Shape::Unary, false),
    rpc("RestorePod", Shape::Unary, false),
    rpc("GetContainerEvents", Shape::Events, true),
    rpc("ListMetricDescriptors", Shape::Unary, false),
    rpc("ListPodSandboxMetrics", Shape::Unary, false),
    rpc("StreamPodSandboxMetrics", Shape::Chunks, false),
    rpc("ListImages", Shape::Unary, false),
    rpc("StreamImages", Shape::Chunks, false),
    rpc("ImageStatus", Shape::Unary, false),
    rpc("PullImage", Shape::Unary, false),
    rpc("RemoveImage", Shape::Unary, false),
    rpc("ImageFsInfo", Shape::Unary, false),
];

/// The RPC of an HTTP path; `None` if CRI v1 does not have it.
#[must_use]
pub(crate) fn of_path(path: &str) -> Option<&'static Rpc> {
    let (service, name) = path.strip_prefix("/runtime.v1.")?.split_once('/')?;
    matches!(service, "RuntimeService" | "ImageService").then(|| named(name))?
}

/// The RPC of this name.
#[must_use]
pub(crate) fn named(name: &str) -> Option<&'static Rpc> {
    RPCS.iter().find(|rpc| rpc.name == name)
}

/// Whether `text` matches `pattern`, in which each `*` matches any text.
#[must_use]
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    text.strip_prefix(start).is_some_and(|text| {
        (0..=text.len())
            .filter(|&at| text.is_char_boundary(at))
            .any(|at| glob(rest, &text[at..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rpc_of_the_agent_is_in_the_table() {
        for name in rubelet_cri::CALLS {
            assert!(named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_path_names_an_rpc_of_either_service() {
        for (path, name) in [
            ("/runtime.v1.RuntimeService/Version", Some("Version")),
            ("/runtime.v1.ImageService/PullImage", Some("PullImage")),
            ("/runtime.v1.RuntimeService/Nonsense", None),
            ("/runtime.v1alpha2.RuntimeService/Version", None),
            ("/grpc.health.v1.Health/Check", None),
            ("", None),
        ] {
            assert_eq!(of_path(path).map(|rpc| rpc.name), name, "{path}");
        }
    }

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("List*", "ListContainers", true),
            ("*Status", "ContainerStatus", true),
            ("*Status", "StatusX", false),
            ("a*c*e", "abcde", true),
            ("web", "web-1", false),
            ("ü*", "üb", true),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }
}
