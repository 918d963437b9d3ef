//! What the kubelet of Kubernetes 1.36 does by default and Rubelet does not support yet. The agent
//! warns of it in one line when it starts, because users do not set defaults.

use crate::field::{Effect, each_leaf};
use crate::fields::KubeletConfiguration;
use crate::gates::Gate;
use rubelet_base::parity::ParityVerdict;

/// A missing behaviour. The agent warns of it as long as one of its fields or gates is not supported,
/// or always if it has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// What is missing, for the warning.
    pub(crate) what: &'static str,
    /// The fields whose defaults cause the behaviour.
    pub(crate) fields: &'static [&'static str],
    /// The feature gates whose defaults cause it.
    pub(crate) gates: &'static [&'static str],
}

const fn gap(
    what: &'static str,
    fields: &'static [&'static str],
    gates: &'static [&'static str],
) -> Gap {
    Gap {
        what,
        fields,
        gates,
    }
}

/// All behaviours of the defaults that are missing.
pub(crate) const GAPS: &[Gap] = &[
    gap(
        "/debug, /checkpoint, /statusz and /flagz",
        &["enableProfilingHandler", "enableDebugFlagsHandler"],
        &["ComponentFlagz", "ComponentStatusz", "ContainerCheckpoint"],
    ),
    gap(
        "in-place resize of pods",
        &[],
        &[
            "InPlacePodVerticalScaling",
            "InPlacePodVerticalScalingInitContainers",
            "InPlacePodLevelResourcesVerticalScaling",
        ],
    ),
    gap(
        "device plugins, dynamic resource allocation and the pod resources API",
        &[],
        &[
            "DRAExtendedResource",
            "DynamicResourceAllocation",
            "KubeletPodResourcesDynamicResources",
            "KubeletPodResourcesGet",
            "KubeletPodResourcesListUseActivePods",
            "ResourceHealthStatus",
            "ResourceHealthStatusMessage",
        ],
    ),
    gap(
        "volumes of CSI and FlexVolume drivers",
        &["volumePluginDir"],
        &[
            "MutableCSINodeAllocatableCount",
            "SELinuxMountReadWriteOncePod",
        ],
    ),
];

/// Fields and gates that are not supported, and have no effect in the kubelet either at the defaults:
/// setting what they need causes a warning.
pub(crate) const IDLE: &[(&str, &str)] = &[
    ("cpuManagerReconcilePeriod", "cpuManagerPolicy: static"),
    ("topologyManagerScope", "topologyManagerPolicy"),
    ("CPUManagerPolicyBetaOptions", "cpuManagerPolicyOptions"),
    ("CPUManagerPolicyOptions", "cpuManagerPolicyOptions"),
    (
        "DisableCPUQuotaWithExclusiveCPUs",
        "cpuManagerPolicy: static",
    ),
    ("KubeletTracing", "tracing"),
    ("NodeLogQuery", "enableSystemLogQuery"),
    (
        "TopologyManagerPolicyBetaOptions",
        "topologyManagerPolicyOptions",
    ),
    (
        "TopologyManagerPolicyOptions",
        "topologyManagerPolicyOptions",
    ),
];

/// What a field or gate needs to have an effect in the kubelet.
pub(crate) fn needs(name: &str) -> Option<&'static str> {
    IDLE.iter()
        .find(|(idle, _)| *idle == name)
        .map(|(_, needs)| *needs)
}

/// What a kubelet would do and Rubelet does not support yet. A gap closes by itself with the last of
/// its fields and gates.
pub(crate) fn open_gaps() -> Vec<&'static str> {
    let open = GAPS.iter().filter(|gap| is_open(gap));
    open.map(|gap| gap.what).collect()
}

fn is_open(gap: &Gap) -> bool {
    if gap.fields.is_empty() && gap.gates.is_empty() {
        return true;
    }
    let mut missing = gap.gates.iter().any(|name| {
        let verdict = Gate::find(name).and_then(Gate::verdict);
        verdict.is_some_and(|(verdict, _)| verdict == ParityVerdict::NotYet)
    });
    each_leaf(KubeletConfiguration::FIELDS, "", &mut |path, field| {
        let undone = matches!(field.effect, Effect::NotYet | Effect::Partly(_));
        missing |= undone && gap.fields.contains(&path);
    });
    missing
}

#[cfg(test)]
mod tests;
