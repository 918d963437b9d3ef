//! Admission of pods to this node, with upstream's order, reasons and messages.
//!
//! Source of the rules: `pkg/kubelet/lifecycle/predicate.go`, the admission handlers around it, and
//! the scheduler's filters of Kubernetes 1.36.

mod affinity;
mod apparmor;
mod ports;
mod preemption;
mod requests;
mod resources;
mod taints;

use std::{collections::BTreeMap, sync::Arc};

use rubelet_api::{
    pod::{Pod, PodSource},
    resources::QosClass,
    scheduling::TaintEffect,
};

pub use preemption::{PREEMPTED, PREEMPTED_CONDITION, PREEMPTING, Preemption, preemption};
pub(crate) use requests::{PodRequests, pod_requests};

use crate::{
    critical::is_critical,
    eviction::Pressure,
    node_status::{
        object::{Node, NodeTaint, Texts},
        registration::LABEL_OS,
        resources::{NodeAmounts, is_extended},
    },
    sysctl::{SYSCTL_FORBIDDEN, check_sysctls},
};
use rubelet_api::quantity::Quantity;

const OS: &str = "linux";

/// The state of the node that admission checks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AdmissionNode {
    /// Name of the node.
    pub name: Box<str>,
    /// Its labels.
    pub labels: Texts,
    /// Its taints.
    pub taints: Vec<NodeTaint>,
    /// Allocatable resources for all pods together.
    pub allocatable: NodeAmounts,
    /// Allocatable extended resources, such as devices.
    pub extended: BTreeMap<Box<str>, u64>,
    /// True if the runtime supports `supplementalGroupsPolicy`.
    pub supplemental_groups_policy: bool,
    /// Resource pressure.
    pub pressure: Pressure,
    /// True if the kernel enforces AppArmor profiles.
    pub apparmor: bool,
    /// `allowedUnsafeSysctls`.
    pub allowed_unsafe_sysctls: Arc<[String]>,
}

impl AdmissionNode {
    /// The values of the node object. The caller sets the rest from facts of the machine.
    #[must_use]
    pub fn from_node(node: &Node) -> Self {
        let status = &node.status;
        let extended = status.allocatable.iter().filter_map(|(name, text)| {
            let amount = Quantity::parse(text).ok()?.units();
            is_extended(name).then(|| (name.clone(), amount))
        });
        let features = status.features.as_ref();
        Self {
            name: node.metadata.name.clone(),
            labels: node.metadata.labels.clone(),
            taints: node.spec.taints.clone(),
            allocatable: NodeAmounts::from_texts(&status.allocatable),
            extended: extended.collect(),
            supplemental_groups_policy: features
                .and_then(|features| features.supplemental_groups_policy)
                .unwrap_or(false),
            ..Self::default()
        }
    }
}

/// The reason why the node rejects a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// `status.reason`, and reason of the event, such as `OutOfcpu`.
    pub reason: Box<str>,
    /// The event's message; `status.message` prepends `Pod was rejected: `.
    pub message: Box<str>,
}

impl Rejection {
    fn new(reason: &str, message: impl Into<Box<str>>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
        }
    }

    fn predicate(name: &str, why: &str) -> Self {
        Self::new(name, format!("Predicate {name} failed: {why}"))
    }
}

/// Decides whether `pod` may run beside `running`, the other active pods of the node.
///
/// # Errors
/// The pod is rejected, for the first reason in upstream's order.
pub fn admit(pod: &Pod, node: &AdmissionNode, running: &[&Pod]) -> Result<(), Rejection> {
    under_pressure(pod, node)?;
    check_sysctls(pod, &node.allowed_unsafe_sysctls)
        .map_err(|error| Rejection::new(SYSCTL_FORBIDDEN, error.to_string()))?;
    fits_system(pod, node)?;
    predicates(pod, node, running)?;
    apparmor::check(pod, node.apparmor)
}

/// The admission check of the eviction manager.
fn under_pressure(pod: &Pod, node: &AdmissionNode) -> Result<(), Rejection> {
    let Pressure { memory, disk, pid } = node.pressure;
    if !(memory || disk || pid) || is_critical(pod) {
        return Ok(());
    }
    let only_memory = memory && !disk && !pid;
    let pressed = NodeTaint {
        key: "node.kubernetes.io/memory-pressure".into(),
        value: "".into(),
        effect: "NoSchedule".into(),
    };
    if only_memory
        && (pod.spec.qos != QosClass::BestEffort
            || taints::tolerates(&pod.spec.tolerations, &pressed))
    {
        return Ok(());
    }
    let conditions: Vec<&str> = [
        (memory, "MemoryPressure"),
        (disk, "DiskPressure"),
        (pid, "PIDPressure"),
    ]
    .into_iter()
    .filter_map(|(holds, name)| holds.then_some(name))
    .collect();
    Err(Rejection::new(
        "Evicted",
        format!("The node had condition: [{}]. ", conditions.join(" ")),
    ))
}

/// Checks that do not depend on other pods.
fn fits_system(pod: &Pod, node: &AdmissionNode) -> Result<(), Rejection> {
    // Upstream checks the pod's labels here, not its selector.
    if pod.labels.get(LABEL_OS).is_some_and(|os| **os != *OS) {
        return Err(Rejection::new(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ));
    }
    if pod.spec.os.as_deref().is_some_and(|os| os != OS) {
        return Err(Rejection::new(
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ));
    }
    if pod.spec.security.supplemental_groups_strict && !node.supplemental_groups_policy {
        return Err(Rejection::new(
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
        ));
    }
    Ok(())
}

/// The scheduler's filters. For a critical pod, failures other than shortages are reported first.
fn predicates(pod: &Pod, node: &AdmissionNode, running: &[&Pod]) -> Result<(), Rejection> {
    let shortages = resources::shortages(pod, node, running);
    let shortage = shortages.first().map(resources::Shortage::rejection);
    let other = other_failures(pod, node, running).into_iter().next();
    // Other pods can be preempted for a critical pod: its shortages are reported only if no other
    // filter fails.
    let first = match is_critical(pod) {
        true => other.or(shortage),
        false => shortage.or(other),
    };
    first.map_or(Ok(()), Err)
}

/// Failed filters other than shortages of resources.
fn other_failures(pod: &Pod, node: &AdmissionNode, running: &[&Pod]) -> Vec<Rejection> {
    let mut others = Vec::new();
    if !affinity::matches(pod, node) {
        others.push(Rejection::predicate(
            "NodeAffinity",
            "node(s) didn't match Pod's node affinity/selector",
        ));
    }
    if !pod.spec.node_name.is_empty() && pod.spec.node_name != node.name {
        others.push(Rejection::predicate(
            "NodeName",
            "node(s) didn't match the requested node name",
        ));
    }
    if ports::conflict(pod, running) {
        others.push(Rejection::predicate(
            "NodePorts",
            "node(s) didn't have free ports for the requested pod ports",
        ));
    }
    let chases = |taint: &&NodeTaint| {
        TaintEffect::from_name(&taint.effect) == Some(TaintEffect::NoExecute)
            && !taints::tolerates(&pod.spec.tolerations, taint)
    };
    if pod.source == PodSource::Api && node.taints.iter().any(|taint| chases(&taint)) {
        others.push(Rejection::predicate(
            "TaintToleration",
            "node(s) had taints that the pod didn't tolerate",
        ));
    }
    others
}

#[cfg(test)]
mod tests;
