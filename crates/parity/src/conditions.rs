//! Conditions of pods and nodes, and the reasons of pods and containers.
//!
//! Source: `pkg/kubelet/status`, `nodestatus`, `lifecycle`, `images/types.go`, `eviction` and
//! `kubelet_pods.go` of Kubernetes 1.36.

use super::row::{ParityRow, better, differs, not_yet, same};

/// Conditions in `status.conditions` of a pod, with the reasons that the kubelet gives.
pub const POD_CONDITIONS: &[ParityRow] = &[
    same("PodReadyToStartContainers"),
    same("Initialized: ContainersNotInitialized, PodCompleted"),
    same(
        "Ready, ContainersReady: ContainersNotReady, PodCompleted, PodFailed, ReadinessGatesNotReady",
    ),
    same("PodScheduled"),
    same("AllContainersRestarting: RestartAllContainersStarted"),
    differs(
        "Initialized, Ready: UnknownContainerStatuses",
        "a status always has its containers, so the reason never applies",
    ),
    same(
        "DisruptionTarget: TerminationByKubelet (of a pod that is preempted, evicted or ended by a shutdown)",
    ),
    same("PodResizePending: Infeasible"),
    not_yet(
        "PodResizePending: Deferred",
        "pods are not resized in place",
    ),
    not_yet(
        "PodResizeInProgress: Error",
        "pods are not resized in place",
    ),
];

/// Conditions of a node with their reasons.
pub const NODE_CONDITIONS: &[ParityRow] = &[
    same("Ready: KubeletReady, KubeletNotReady"),
    same("MemoryPressure: KubeletHasInsufficientMemory, KubeletHasSufficientMemory"),
    same("DiskPressure: KubeletHasDiskPressure, KubeletHasNoDiskPressure"),
    same("PIDPressure: KubeletHasInsufficientPID, KubeletHasSufficientPID"),
];

/// `status.reason` of a pod that failed or was not admitted.
pub const POD_REASONS: &[ParityRow] = &[
    same("AppArmor"),
    same("DeadlineExceeded"),
    same("Evicted (a node under pressure admits no such pod)"),
    same("Evicted (a pod that runs)"),
    better(
        "InitContainerRestartPolicyForbidden",
        "sidecars are always there, so no node has the reason",
    ),
    same("NodeAffinity, TaintToleration and other predicates by name"),
    same("OutOfcpu, OutOfmemory, OutOfpods and other resources"),
    better(
        "PodFeatureUnsupported",
        "names the field, for each that the node does not have",
    ),
    differs(
        "PodLevelResourcesNotSupported",
        "such pods always run: the feature gate PodLevelResources is always on",
    ),
    same("PodOSSelectorNodeLabelDoesNotMatch, PodOSNotSupported"),
    same("Preempting"),
    same("SupplementalGroupsPolicyNotSupported"),
    same("SysctlForbidden"),
    better(
        "Terminated, NodeShutdown",
        "after a cancelled shutdown, pods of manifests run again, and new ones are admitted",
    ),
    not_yet(
        "TopologyAffinityError, UnexpectedAdmissionError, ResourceAllocation",
        "no CPUs, memory or devices are allocated",
    ),
];

/// Reasons in the state of a container.
pub const CONTAINER_REASONS: &[ParityRow] = &[
    same("waiting: ContainerCreating, PodInitializing"),
    same("waiting: CrashLoopBackOff"),
    same(
        "waiting: CreateContainerConfigError, CreateContainerError, RunContainerError, PostStartHookError",
    ),
    same(
        "waiting: ErrImagePull, ImagePullBackOff, ErrImageNeverPull, InvalidImageName, ImageInspectError",
    ),
    same("waiting: RegistryUnavailable, SignatureValidationFailed"),
    better(
        "waiting: CrashLoopBackOff, the message",
        "`rubelet get` shows when the next try is",
    ),
    same("terminated: Completed, Error, OOMKilled, ContainerStatusUnknown, StartError"),
    same("terminated: RestartingAllContainers"),
];
