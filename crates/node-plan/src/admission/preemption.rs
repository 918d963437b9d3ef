//! Preemption of pods in favor of a critical pod.
//!
//! Source of the rules: `pkg/kubelet/preemption/preemption.go` of Kubernetes 1.36.

#[cfg(test)]
mod tests;

use rubelet_api::{
    pod::{Pod, PodSource},
    resources::QosClass,
};

use super::{
    AdmissionNode, PodRequests, admit, apparmor, is_critical, pod_requests,
    resources::{Shortage, shortages},
};

/// Reason of a preempted pod, in its status and its event.
pub const PREEMPTING: &str = "Preempting";
/// Message of a preempted pod, in its status and its event.
pub const PREEMPTED: &str = "Preempted in order to admit critical pod";
/// Message of the condition `DisruptionTarget` of a preempted pod.
pub const PREEMPTED_CONDITION: &str = "Pod was preempted by Kubelet to accommodate a critical pod.";

/// The pods to preempt for a critical pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Preemption<'a> {
    /// The preempted pods.
    pub victims: Vec<&'a Pod>,
    /// The first missing resource, which is the label of upstream's preemption metric.
    pub resource: Box<str>,
}

/// The pods of `running` to preempt so that `pod` fits: as few as possible, best-effort pods before
/// burstable and guaranteed ones. `None` if the pod is not critical, is rejected for another reason
/// than a shortage, or would not fit even if all of them were preempted.
#[must_use]
pub fn preemption<'a>(
    pod: &Pod,
    node: &AdmissionNode,
    running: &[&'a Pod],
) -> Option<Preemption<'a>> {
    let missing = shortages(pod, node, running);
    let rejected = admit(pod, node, running).err()?;
    // For a critical pod, shortages are reported last.
    let first = missing.first()?;
    let only_short = first.rejection() == rejected;
    if !is_critical(pod) || !only_short || apparmor::check(pod, node.apparmor).is_err() {
        return None;
    }
    let needs: MissingAmounts = missing
        .iter()
        .map(|shortage| (shortage, shortage.missing()))
        .collect();
    let candidates = |class: QosClass| -> Vec<Candidate<'a>> {
        let pods = running.iter().filter(|other| preemptable(pod, other));
        pods.filter(|other| other.spec.qos == class)
            .map(|pod| Candidate {
                pod,
                requests: pod_requests(pod),
            })
            .collect()
    };
    let best_effort = candidates(QosClass::BestEffort);
    let burstable = candidates(QosClass::Burstable);
    let guaranteed = candidates(QosClass::Guaranteed);
    // From each QoS class only the pods that are still needed when all lower classes, and the
    // victims of the higher ones, are gone.
    let guaranteed = choose_victims(
        &guaranteed,
        &missing_without(&needs, best_effort.iter().chain(&burstable)),
    )?;
    let burstable = choose_victims(
        &burstable,
        &missing_without(&needs, best_effort.iter().chain(&guaranteed)),
    )?;
    let best_effort = choose_victims(
        &best_effort,
        &missing_without(&needs, burstable.iter().chain(&guaranteed)),
    )?;
    let chosen = best_effort.into_iter().chain(burstable).chain(guaranteed);
    Some(Preemption {
        victims: chosen.map(|candidate| candidate.pod).collect(),
        resource: first.name.clone(),
    })
}

/// Missing resources and amounts.
type MissingAmounts<'a> = Vec<(&'a Shortage, u64)>;

#[derive(Clone)]
struct Candidate<'a> {
    pod: &'a Pod,
    requests: PodRequests,
}

impl Candidate<'_> {
    /// The amount of a resource that the pod frees.
    fn frees(&self, name: &str) -> u64 {
        match name {
            "pods" => 1,
            "cpu" => self.requests.cpu,
            "memory" => self.requests.memory,
            "ephemeral-storage" => self.requests.ephemeral_storage,
            other => self.requests.scalars.get(other).copied().unwrap_or(0),
        }
    }
}

/// True if `pod` may preempt `other`.
fn preemptable(pod: &Pod, other: &Pod) -> bool {
    if is_critical(pod) && !is_critical(other) {
        return true;
    }
    // A manifest without a priority can't be compared.
    let known = |pod: &Pod| {
        (pod.source == PodSource::Api || pod.spec.priority != 0).then_some(pod.spec.priority)
    };
    matches!((known(pod), known(other)), (Some(mine), Some(theirs)) if mine > theirs)
}

/// The amounts that are still missing without these pods.
fn missing_without<'n, 'a: 'c, 'c>(
    needs: &MissingAmounts<'n>,
    gone: impl Iterator<Item = &'c Candidate<'a>>,
) -> MissingAmounts<'n> {
    let mut left = needs.clone();
    for candidate in gone {
        for (shortage, amount) in &mut left {
            *amount = amount.saturating_sub(candidate.frees(&shortage.name));
        }
    }
    left.retain(|(_, amount)| *amount > 0);
    left
}

/// Chooses pods until nothing is missing, each time the one that leaves the smallest shortage; of
/// equal ones the one with the smaller requests. `None` if all of them are not enough.
fn choose_victims<'a>(
    candidates: &[Candidate<'a>],
    needs: &MissingAmounts<'_>,
) -> Option<Vec<Candidate<'a>>> {
    let (mut pool, mut needs) = (candidates.to_vec(), needs.clone());
    let mut chosen = Vec::new();
    while !needs.is_empty() {
        let size = |one: &Candidate<'_>| (one.requests.memory, one.requests.cpu);
        let order = |a: &Candidate<'_>, b: &Candidate<'_>| {
            let (near, far) = (distance(a, &needs), distance(b, &needs));
            near.total_cmp(&far).then_with(|| size(a).cmp(&size(b)))
        };
        let best = (0..pool.len()).min_by(|a, b| order(&pool[*a], &pool[*b]))?;
        let taken = pool.swap_remove(best);
        needs = missing_without(&needs, std::iter::once(&taken));
        chosen.push(taken);
    }
    Some(chosen)
}

/// The remaining shortage without a pod: the sum of the squares of the missing shares.
#[expect(
    clippy::cast_precision_loss,
    reason = "shares are compared, not counted"
)]
fn distance(candidate: &Candidate<'_>, needs: &MissingAmounts<'_>) -> f64 {
    let shares = needs.iter().map(|(shortage, amount)| {
        let left = amount.saturating_sub(candidate.frees(&shortage.name));
        (left as f64 / *amount as f64).powi(2)
    });
    shares.sum()
}
