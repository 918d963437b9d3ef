//! How each feature gate of the kubelet that is enabled by default compares: whether Rubelet has its
//! feature.

use super::{Gate, GateOwner};
use rubelet_base::parity::ParityVerdict::{self, Better, Differs, NotYet, Same};

/// Gates whose features differ from the kubelet's. All other gates of the kubelet that are enabled
/// by default are in [`SAME`].
const OTHER: &[(&str, ParityVerdict, &str)] = &[
    ("CPUManagerPolicyBetaOptions", NotYet, ""),
    ("CPUManagerPolicyOptions", NotYet, ""),
    ("ComponentFlagz", NotYet, "/flagz answers 501"),
    ("ComponentStatusz", NotYet, "/statusz answers 501"),
    ("ContainerCheckpoint", NotYet, "/checkpoint answers 501"),
    (
        "ContextualLogging",
        Differs,
        "lines of the log have structured fields: pod, container, node",
    ),
    ("DRAExtendedResource", NotYet, "no devices are allocated"),
    ("DisableCPUQuotaWithExclusiveCPUs", NotYet, ""),
    (
        "DynamicResourceAllocation",
        NotYet,
        "pods with resourceClaims are rejected with the field's name",
    ),
    (
        "EventedPLEG",
        Better,
        "enabled by default, with the runtime's events checked by relists; see pleg.md",
    ),
    ("ImageMaximumGCAge", Same, ""),
    (
        "InPlacePodLevelResourcesVerticalScaling",
        NotYet,
        "a resize gets the condition PodResizePending with the reason Infeasible",
    ),
    (
        "InPlacePodVerticalScaling",
        NotYet,
        "a resize gets the condition PodResizePending with the reason Infeasible",
    ),
    (
        "InPlacePodVerticalScalingInitContainers",
        NotYet,
        "a resize gets the condition PodResizePending with the reason Infeasible",
    ),
    (
        "KubeletPodResourcesDynamicResources",
        NotYet,
        "the pod resources API is not served",
    ),
    (
        "KubeletPodResourcesGet",
        NotYet,
        "the pod resources API is not served",
    ),
    (
        "KubeletPodResourcesListUseActivePods",
        NotYet,
        "the pod resources API is not served",
    ),
    ("KubeletTracing", NotYet, ""),
    (
        "MutableCSINodeAllocatableCount",
        NotYet,
        "pods with volumes of CSI drivers are rejected with the field's name",
    ),
    ("NodeLogQuery", NotYet, ""),
    (
        "PLEGOnDemandRelist",
        Better,
        "a pod is inspected individually when its containers change; see pleg.md",
    ),
    ("PodLevelResources", Same, ""),
    (
        "PreventStaticPodAPIReferences",
        Better,
        "a manifest that references an object of the API server is rejected with its field, line and column",
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
        "pods with volumes of CSI drivers are rejected with the field's name",
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
    "GracefulNodeShutdown",
    "GracefulNodeShutdownBasedOnPodPriority",
    "HostnameOverride",
    "ImageVolume",
    "KubeletCgroupDriverFromCRI",
    "KubeletCrashLoopBackOffMax",
    "KubeletEnsureSecretPulledImages",
    "KubeletFineGrainedAuthz",
    "KubeletPSI",
    "KubeletSeparateDiskGC",
    "KubeletServiceAccountTokenForCredentialProviders",
    "LoggingBetaOptions",
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
    /// How the feature compares with the kubelet's, and why if it is not the same. `None` for a gate
    /// that is disabled by default or not the kubelet's.
    #[must_use]
    pub fn verdict(&self) -> Option<(ParityVerdict, &'static str)> {
        if self.owner != GateOwner::Kubelet || !self.default {
            return None;
        }
        if SAME.contains(&self.name) {
            return Some((Same, ""));
        }
        let other = OTHER.iter().find(|(name, ..)| *name == self.name);
        other.map(|(_, verdict, why)| (*verdict, *why))
    }
}
