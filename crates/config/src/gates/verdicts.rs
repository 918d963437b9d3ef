//! How each feature gate of the kubelet that is on by default compares: whether the feature is here.

use super::{Gate, GateOwner};
use rubelet_base::parity::ParityVerdict::{self, Better, Differs, NotYet, Same};

/// Gates whose features are not as the kubelet has them. All others of the kubelet that are on by
/// default are in [`SAME`].
const OTHER: &[(&str, ParityVerdict, &str)] = &[
    ("CPUManagerPolicyBetaOptions", NotYet, ""),
    ("CPUManagerPolicyOptions", NotYet, ""),
    ("ComponentFlagz", NotYet, "/flagz answers 501"),
    ("ComponentStatusz", NotYet, "/statusz answers 501"),
    ("ContainerCheckpoint", NotYet, "/checkpoint answers 501"),
    (
        "ContextualLogging",
        Differs,
        "lines of the log have fields of their own: pod, container, node",
    ),
    ("DRAExtendedResource", NotYet, "no devices are allocated"),
    ("DisableCPUQuotaWithExclusiveCPUs", NotYet, ""),
    (
        "DynamicResourceAllocation",
        NotYet,
        "pods with resourceClaims are rejected by name",
    ),
    (
        "EventedPLEG",
        Better,
        "on by default, with the runtime's events checked against lists; see pleg.md",
    ),
    ("GracefulNodeShutdown", NotYet, ""),
    ("GracefulNodeShutdownBasedOnPodPriority", NotYet, ""),
    ("ImageMaximumGCAge", Same, ""),
    (
        "InPlacePodLevelResourcesVerticalScaling",
        NotYet,
        "pods with resources of the pod are rejected by name",
    ),
    (
        "InPlacePodVerticalScaling",
        NotYet,
        "a resize is answered with the condition PodResizePending, reason Infeasible",
    ),
    (
        "InPlacePodVerticalScalingInitContainers",
        NotYet,
        "a resize is answered with the condition PodResizePending, reason Infeasible",
    ),
    (
        "KubeletPSI",
        NotYet,
        "the embedded runtime measures it; no endpoint shows it",
    ),
    (
        "KubeletPodResourcesDynamicResources",
        NotYet,
        "the socket of pod resources is not served",
    ),
    (
        "KubeletPodResourcesGet",
        NotYet,
        "the socket of pod resources is not served",
    ),
    (
        "KubeletPodResourcesListUseActivePods",
        NotYet,
        "the socket of pod resources is not served",
    ),
    ("KubeletSeparateDiskGC", NotYet, "no pod is evicted"),
    ("KubeletTracing", NotYet, ""),
    ("LoggingBetaOptions", NotYet, ""),
    (
        "MutableCSINodeAllocatableCount",
        NotYet,
        "pods with volumes of CSI drivers are rejected by name",
    ),
    ("NodeLogQuery", NotYet, ""),
    (
        "PLEGOnDemandRelist",
        Better,
        "a pod is looked at alone when its containers change; see pleg.md",
    ),
    (
        "PodLevelResources",
        NotYet,
        "pods with resources of the pod are rejected by name",
    ),
    (
        "PreventStaticPodAPIReferences",
        Better,
        "a manifest that names an object of the API server is refused with its field, line and column",
    ),
    ("ResourceHealthStatus", NotYet, "no devices are allocated"),
    (
        "ResourceHealthStatusMessage",
        NotYet,
        "no devices are allocated",
    ),
    (
        "SELinuxMountReadWriteOncePod",
        NotYet,
        "pods with volumes of CSI drivers are rejected by name",
    ),
    ("TopologyManagerPolicyBetaOptions", NotYet, ""),
    ("TopologyManagerPolicyOptions", NotYet, ""),
];

/// Gates whose features work as in the kubelet.
const SAME: &[&str] = &[
    "ContainerRestartRules",
    "CustomCPUCFSQuotaPeriod",
    "EnvFiles",
    "ExecProbeTimeout",
    "ExtendWebSocketsToKubelet",
    "HostnameOverride",
    "ImageVolume",
    "KubeletCgroupDriverFromCRI",
    "KubeletCrashLoopBackOffMax",
    "KubeletEnsureSecretPulledImages",
    "KubeletFineGrainedAuthz",
    "KubeletServiceAccountTokenForCredentialProviders",
    "NodeDeclaredFeatures",
    "NodeSwap",
    "PodLifecycleSleepAction",
    "PodLifecycleSleepActionAllowZero",
    "PodObservedGenerationTracking",
    "PodReadyToStartContainersCondition",
    "ProcMountType",
    "RecursiveReadOnlyMounts",
    "RelaxedDNSSearchValidation",
    "RelaxedEnvironmentVariableValidation",
    "ReloadKubeletClientCAFile",
    "ReloadKubeletServerCertificateFile",
    "RestartAllContainersOnContainerExits",
    "RotateKubeletServerCertificate",
    "SidecarContainers",
    "SupplementalGroupsPolicy",
    "SystemdWatchdog",
    "UserNamespacesSupport",
];

impl Gate {
    /// How the feature compares with the kubelet's, and why where it is not the same. `None` for a gate
    /// that is off by default or not the kubelet's.
    #[must_use]
    pub fn verdict(&self) -> Option<(ParityVerdict, &'static str)> {
        if self.whose != GateOwner::Kubelet || !self.default {
            return None;
        }
        if SAME.contains(&self.name) {
            return Some((Same, ""));
        }
        let other = OTHER.iter().find(|(name, ..)| *name == self.name);
        other.map(|(_, verdict, why)| (*verdict, *why))
    }
}
