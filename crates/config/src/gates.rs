//! Feature gates: their names, their values, and the effect of setting one in Rubelet.
//!
//! Source of the rules: `k8s.io/component-base/featuregate` of Kubernetes 1.36.

mod table;
mod verdicts;

use std::collections::BTreeMap;
use table::GATES;

/// Sets every alpha gate that is not set by name.
const ALL_ALPHA: &str = "AllAlpha";
/// Sets every beta gate that is not set by name.
const ALL_BETA: &str = "AllBeta";

/// Gates that decide which configurations are valid.
const CHECKS: [&str; 10] = [
    "CPUManagerPolicyAlphaOptions",
    "CPUManagerPolicyBetaOptions",
    "CustomCPUCFSQuotaPeriod",
    "GracefulNodeShutdown",
    "GracefulNodeShutdownBasedOnPodPriority",
    "KubeletCrashLoopBackOffMax",
    "KubeletEnsureSecretPulledImages",
    "KubeletServiceAccountTokenForCredentialProviders",
    "LoggingAlphaOptions",
    "RotateKubeletServerCertificate",
];

/// Gates that enable or disable a behaviour. All others have no effect in Rubelet.
const SWITCHES: [&str; 8] = [
    "AllowDNSOnlyNodeCSR",
    "EventedPLEG",
    "LocalStorageCapacityIsolationFSQuotaMonitoring",
    "MemoryQoS",
    "PodAndContainerStatsFromCRI",
    "PodLogsQuerySplitStreams",
    "QOSReserved",
    "ReloadKubeletServerCertificateFile",
];

/// The effect of setting a gate in Rubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateEffect {
    /// It enables or disables a behaviour.
    Switches,
    /// It decides which configurations are valid.
    Checks,
    /// None.
    Nothing,
}

/// Stage of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Disabled by default.
    Alpha,
    /// Enabled by default, with few exceptions.
    Beta,
    /// General availability.
    Stable,
    /// To be removed.
    Deprecated,
}

/// The component that a gate belongs to. A kubelet accepts all gates, so that one list can be given
/// to every component of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOwner {
    /// The kubelet's.
    Kubelet,
    /// Another component's.
    Other,
}

/// One feature gate.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// Name, as upstream spells it.
    pub name: &'static str,
    /// Value if it is not set.
    pub default: bool,
    /// Stage of the feature.
    pub stage: Stage,
    /// Whether it is locked to its default.
    pub locked: bool,
    /// The component that it belongs to.
    pub owner: GateOwner,
}

impl Gate {
    const fn new(
        name: &'static str,
        default: bool,
        stage: Stage,
        locked: bool,
        owner: GateOwner,
    ) -> Self {
        Self {
            name,
            default,
            stage,
            locked,
            owner,
        }
    }

    /// The gate of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        GATES
            .binary_search_by(|gate| gate.name.cmp(name))
            .ok()
            .map(|index| &GATES[index])
    }

    /// Every gate, in the order of the names.
    #[must_use]
    pub fn all() -> &'static [Self] {
        GATES
    }

    /// The effect of setting it to a value other than its default.
    pub(crate) fn effect(&self) -> GateEffect {
        if SWITCHES.contains(&self.name) {
            GateEffect::Switches
        } else if CHECKS.contains(&self.name) {
            GateEffect::Checks
        } else {
            GateEffect::Nothing
        }
    }
}

/// Why a gate can't be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// No component has a gate of this name.
    #[error("unknown feature gate{}", match nearest {
        Some(nearest) => format!("; did you mean {nearest:?}?"),
        None => "; Kubernetes 1.36 has no gate of this name".to_owned(),
    })]
    Unknown {
        /// The name that was given.
        name: String,
        /// The name that may have been meant.
        nearest: Option<&'static str>,
    },
    /// The gate is locked to its default.
    #[error("cannot be {}; the gate is locked to {default}", !default)]
    Locked {
        /// Name of the gate.
        name: &'static str,
        /// Its only allowed value.
        default: bool,
    },
}

/// The values of all feature gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    set: BTreeMap<&'static str, bool>,
    all_alpha: Option<bool>,
    all_beta: Option<bool>,
}

impl FeatureGates {
    /// Reads the field `featureGates`.
    ///
    /// # Errors
    /// A name is unknown, or a locked gate is set to the other value. The error comes with the name
    /// of the gate.
    pub fn from_map(map: &BTreeMap<String, bool>) -> Result<Self, (String, GateError)> {
        let mut gates = Self::default();
        for (name, &value) in map {
            match name.as_str() {
                ALL_ALPHA => gates.all_alpha = Some(value),
                ALL_BETA => gates.all_beta = Some(value),
                _ => {
                    let fail = |error| (name.clone(), error);
                    let gate = Gate::find(name).ok_or_else(|| fail(unknown(name)))?;
                    if gate.locked && value != gate.default {
                        let (name, default) = (gate.name, gate.default);
                        return Err(fail(GateError::Locked { name, default }));
                    }
                    gates.set.insert(gate.name, value);
                }
            }
        }
        Ok(gates)
    }

    /// Whether the feature of this name is enabled. A name that does not exist is disabled.
    #[must_use]
    pub fn enabled(&self, name: &str) -> bool {
        let Some(gate) = Gate::find(name) else {
            return false;
        };
        if gate.locked {
            return gate.default;
        }
        let by_stage = match gate.stage {
            Stage::Alpha => self.all_alpha,
            Stage::Beta => self.all_beta,
            Stage::Stable | Stage::Deprecated => None,
        };
        self.set
            .get(name)
            .copied()
            .or(by_stage)
            .unwrap_or(gate.default)
    }
}

fn unknown(name: &str) -> GateError {
    let candidates = GATES.iter().map(|gate| gate.name);
    GateError::Unknown {
        name: name.to_owned(),
        nearest: rubelet_yaml::nearest(name, candidates),
    }
}

#[cfg(test)]
mod tests;
