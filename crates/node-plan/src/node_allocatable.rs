//! `enforceNodeAllocatable`: what the cgroup of all pods is limited to, and the cgroups of what the
//! reservations are for.
//!
//! Source of the rules: `pkg/kubelet/cm/node_container_manager_linux.go` of Kubernetes 1.36.

use std::collections::BTreeMap;

use rubelet_api::{quantity::Quantity, resources::Bytes};
use rubelet_base::event_reason;
use rubelet_cgroup_plan::{CgroupValues, HugepageLimit, cpu};

use crate::{
    node_status::{
        NodeEvent,
        resources::{self, NodeAmounts, Reserved, ReservedError},
    },
    tree_values::KubepodsAmounts,
};

/// What all pods may use together: the capacity, less what is reserved if `enforceNodeAllocatable`
/// has `pods`. Eviction thresholds are not subtracted: pods may use that memory until they are
/// evicted. `pids` is the most processes of the machine, if they can be limited.
#[must_use]
pub fn kubepods_amounts(
    capacity: &NodeAmounts,
    pids: Option<u64>,
    enforced: Option<&Reserved>,
) -> KubepodsAmounts {
    let (amounts, pids) = match enforced {
        Some(reserved) => {
            let pids = pids.map(|all| all.saturating_sub(reserved.pids));
            (resources::enforced(capacity, reserved), pids)
        }
        None => (capacity.clone(), pids),
    };
    KubepodsAmounts {
        cpu: amounts.cpu,
        memory: amounts.memory,
        pids,
        hugepages: amounts.hugepages,
    }
}

/// Whose reservation a cgroup is limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservedFor {
    /// The system: `systemReserved`.
    System,
    /// Kubernetes: `kubeReserved`.
    Kube,
}

impl ReservedFor {
    /// The word in the kubelet's events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Kube => "kube",
        }
    }

    /// The field with the name of the cgroup.
    #[must_use]
    pub fn cgroup_field(self) -> &'static str {
        match self {
            Self::System => "systemReservedCgroup",
            Self::Kube => "kubeReservedCgroup",
        }
    }
}

/// A cgroup that exists already and is limited to its reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedCgroup {
    /// Whose it is.
    pub owner: ReservedFor,
    /// True if only CPU is limited: the entry ends in `-compressible`.
    pub compressible: bool,
    /// Its configured name.
    pub name: String,
    /// Its limits.
    pub values: CgroupValues,
}

impl ReservedCgroup {
    /// Its entry in `enforceNodeAllocatable`.
    #[must_use]
    pub fn entry(&self) -> String {
        let suffix = if self.compressible {
            "-compressible"
        } else {
            ""
        };
        format!("{}-reserved{suffix}", self.owner.as_str())
    }
}

/// A cgroup that node allocatable limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitedCgroup {
    /// That of all pods.
    Pods {
        /// Its name, from the top.
        components: Vec<String>,
    },
    /// That of a reservation.
    Reserved(ReservedCgroup),
}

/// An attempt to limit a cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupEnforcement {
    /// The cgroup.
    pub cgroup: LimitedCgroup,
    /// The error if its limits are not in force.
    pub result: Result<(), EnforcementError>,
}

/// A message that says why the limits of a cgroup are not in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EnforcementError(pub String);

impl CgroupEnforcement {
    /// The event about it, with the kubelet's reason and message.
    #[must_use]
    pub fn event(&self) -> NodeEvent {
        let message = match (&self.cgroup, &self.result) {
            (LimitedCgroup::Pods { .. }, Ok(())) => {
                "Updated Node Allocatable limit across pods".to_owned()
            }
            (LimitedCgroup::Pods { components }, Err(error)) => {
                let quoted: Vec<String> =
                    components.iter().map(|name| format!("{name:?}")).collect();
                let name = quoted.join(" ");
                format!("Failed to update Node Allocatable Limits [{name}]: {error}")
            }
            (LimitedCgroup::Reserved(cgroup), Ok(())) => {
                let (owner, name) = (cgroup.owner.as_str(), &cgroup.name);
                format!("Updated limits on {owner} reserved cgroup {name}")
            }
            (LimitedCgroup::Reserved(cgroup), Err(error)) => {
                let owner = match cgroup.owner {
                    ReservedFor::System => "System",
                    ReservedFor::Kube => "Kube",
                };
                let compressible = if cgroup.compressible {
                    " Compressible"
                } else {
                    ""
                };
                let name = &cgroup.name;
                format!(
                    "Failed to enforce {owner} Reserved{compressible} Cgroup Limits on {name:?}: {error}"
                )
            }
        };
        NodeEvent {
            warning: self.result.is_err(),
            reason: match self.result {
                Ok(()) => event_reason::NODE_ALLOCATABLE_ENFORCED,
                Err(_) => event_reason::FAILED_NODE_ALLOCATABLE_ENFORCEMENT,
            },
            message,
        }
    }

    /// Why the agent must not start: what is reserved for others can't be enforced. That of all pods is
    /// tried again: pods that are there already may use more.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        match &self.cgroup {
            LimitedCgroup::Pods { .. } => None,
            LimitedCgroup::Reserved(cgroup) => self.result.is_err().then(|| {
                let (message, entry) = (self.event().message, cgroup.entry());
                let field = cgroup.owner.cgroup_field();
                format!(
                    "{message}; correct {field}, or take {entry:?} out of enforceNodeAllocatable"
                )
            }),
        }
    }
}

/// The fields of the configuration that reserved cgroups depend on.
#[derive(Debug, Clone, Copy)]
pub struct ReservedCgroupTexts<'a> {
    /// `enforceNodeAllocatable`.
    pub enforce: &'a [String],
    /// `systemReserved` and `systemReservedCgroup`.
    pub system: (&'a BTreeMap<String, String>, &'a str),
    /// `kubeReserved` and `kubeReservedCgroup`.
    pub kube: (&'a BTreeMap<String, String>, &'a str),
}

/// The reserved cgroups that `enforceNodeAllocatable` names, in the order in which a kubelet limits
/// them. `page_sizes` are the sizes of huge pages that the kernel knows, in bytes.
///
/// # Errors
/// An amount is not a quantity.
pub fn reserved_cgroups(
    texts: &ReservedCgroupTexts<'_>,
    page_sizes: &[Bytes],
) -> Result<Vec<ReservedCgroup>, ReservedError> {
    let mut found = Vec::new();
    for compressible in [false, true] {
        for (owner, (amounts, name)) in [
            (ReservedFor::System, texts.system),
            (ReservedFor::Kube, texts.kube),
        ] {
            let cgroup = ReservedCgroup {
                owner,
                compressible,
                name: name.to_owned(),
                values: reserved_values(amounts, compressible, page_sizes)?,
            };
            if texts.enforce.contains(&cgroup.entry()) {
                found.push(cgroup);
            }
        }
    }
    Ok(found)
}

/// Only what is reserved is limited, except for huge pages: none can be reserved, so a cgroup may
/// have none. CPU alone is compressible: a process that lacks it waits. (A kubelet also takes huge
/// pages away from a cgroup whose compressible resources alone are to be enforced.)
fn reserved_values(
    amounts: &BTreeMap<String, String>,
    compressible: bool,
    page_sizes: &[Bytes],
) -> Result<CgroupValues, ReservedError> {
    let amount = |resource: &str| {
        let parsed = amounts.get(resource).map(|text| {
            Quantity::parse(text).map_err(|source| ReservedError {
                resource: resource.to_owned(),
                text: text.clone(),
                source,
            })
        });
        parsed.transpose()
    };
    let share = amount("cpu")?.map(|quantity| cpu::share(quantity.milli_cpu()));
    let (memory, pids) = (amount("memory")?, amount("pid")?);
    if compressible {
        return Ok(CgroupValues {
            cpu: share,
            ..CgroupValues::default()
        });
    }
    Ok(CgroupValues {
        cpu: share,
        memory_limit: memory.map(Quantity::units),
        pids_limit: pids.map(Quantity::units),
        hugepages: page_sizes
            .iter()
            .map(|&page_size| HugepageLimit {
                page_size,
                limit: 0,
            })
            .collect(),
        ..CgroupValues::default()
    })
}

#[cfg(test)]
mod tests;
