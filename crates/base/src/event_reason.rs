//! Reasons of events.
//!
//! Those of the kubelet have its values; each constant has the name of the kubelet's, without the
//! prefixes and suffixes that Go needs. Source of the values: `pkg/kubelet/events/event.go` of
//! Kubernetes 1.36.

/// `CreatedContainer`.
pub const CREATED: &str = "Created";
/// `StartedContainer`.
pub const STARTED: &str = "Started";
/// `FailedToCreateContainer`, `FailedToStartContainer` and `FailedToPullImage`, which share it.
pub const FAILED: &str = "Failed";
/// `KillingContainer`.
pub const KILLING: &str = "Killing";
/// `BackOffStartContainer` and `BackOffPullImage`, which share it.
pub const BACK_OFF: &str = "BackOff";
/// `PullingImage`.
pub const PULLING: &str = "Pulling";
/// `PulledImage`.
pub const PULLED: &str = "Pulled";
/// `FailedToInspectImage`.
pub const INSPECT_FAILED: &str = "InspectFailed";
/// `StartingKubelet`.
pub const STARTING: &str = "Starting";
/// `FailedMountVolume`.
pub const FAILED_MOUNT: &str = "FailedMount";
/// `FailedCreatePodSandBox`.
pub const FAILED_SANDBOX: &str = "FailedCreatePodSandBox";
/// `FailedToCreatePodContainer`: the cgroup of a pod.
pub const FAILED_POD_CONTAINER: &str = "FailedCreatePodContainer";
/// `SandboxChanged`.
pub const SANDBOX_CHANGED: &str = "SandboxChanged";
/// `InvalidDiskCapacity`.
pub const INVALID_DISK_CAPACITY: &str = "InvalidDiskCapacity";
/// `SuccessfulNodeAllocatableEnforcement`.
pub const NODE_ALLOCATABLE_ENFORCED: &str = "NodeAllocatableEnforced";
/// `FailedNodeAllocatableEnforcement`.
pub const FAILED_NODE_ALLOCATABLE_ENFORCEMENT: &str = "FailedNodeAllocatableEnforcement";
/// `NodeRebooted`.
pub const REBOOTED: &str = "Rebooted";
/// `ContainerUnhealthy`.
pub const UNHEALTHY: &str = "Unhealthy";
/// `ContainerProbeWarning`.
pub const PROBE_WARNING: &str = "ProbeWarning";
/// `FailedPostStartHook`.
pub const FAILED_POST_START_HOOK: &str = "FailedPostStartHook";
/// `FailedPreStopHook`.
pub const FAILED_PRE_STOP_HOOK: &str = "FailedPreStopHook";
/// `LifecycleHTTPFallback`: an httpGet hook was tried again over HTTP.
pub const LIFECYCLE_HTTP_FALLBACK: &str = "LifecycleHTTPFallback";
/// `DeadlineExceeded`: `activeDeadlineSeconds` is over.
pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
