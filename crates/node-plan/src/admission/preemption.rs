//! Which pods have to go so that a critical pod fits.
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

/// `status.reason` of a pod that went for a critical one, and that of the event.
pub const PREEMPTING: &str = "Preempting";
/// `status.message` of it, and that of the event.
pub const PREEMPTED: &str = "Preempted in order to admit critical pod";
/// Message of its condition `DisruptionTarget`.
pub const PREEMPTED_CONDITION: &str = "Pod was preempted by Kubelet to accommodate a critical pod.";

/// Which pods end so that a critical pod fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Preemption<'a> {
    /// The pods.
    pub victims: Vec<&'a Pod>,
    /// The resource that is missing, the first if there are several: what upstream counts the
    /// preemption under.
    pub resource: Box<str>,
}

/// The pods of `running` that have to end so that `pod` fits: as few and as unimportant ones as will
/// do, best-effort pods before burstable and guaranteed ones. `None` if the pod is not critical, if
/// more than a shortage keeps it away, or if not all of them together would be enough.
#[must_use]
pub fn preemption<'a>(
    pod: &Pod,
    node: &AdmissionNode,
    running: &[&'a Pod],
) -> Option<Preemption<'a>> {
    let missing = shortages(pod, node, running);
    let rejected = admit(pod, node, running).err()?;
    // Of a critical pod, shortages are reported last.
    let first = missing.first()?;
    let only_short = first.rejection() == rejected;
    if !is_critical(pod) || !only_short || apparmor::check(pod, node.apparmor).is_err() {
        return None;
    }
    let needs: Needs = missing
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
    // Of each class only what is needed once all lower ones, and the chosen of the higher ones, go.
    let guaranteed = nearest(
        &guaranteed,
        &without(&needs, best_effort.iter().chain(&burstable)),
    )?;
    let burstable = nearest(
        &burstable,
        &without(&needs, best_effort.iter().chain(&guaranteed)),
    )?;
    let best_effort = nearest(
        &best_effort,
        &without(&needs, burstable.iter().chain(&guaranteed)),
    )?;
    let chosen = best_effort.into_iter().chain(burstable).chain(guaranteed);
    Some(Preemption {
        victims: chosen.map(|candidate| candidate.pod).collect(),
        resource: first.name.clone(),
    })
}

/// Resources that are missing, and how much of each.
type Needs<'a> = Vec<(&'a Shortage, u64)>;

#[derive(Clone)]
struct Candidate<'a> {
    pod: &'a Pod,
    requests: PodRequests,
}

impl Candidate<'_> {
    /// What becomes free of a resource when the pod ends.
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

/// Whether one pod may take another's place.
fn preemptable(pod: &Pod, other: &Pod) -> bool {
    if is_critical(pod) && !is_critical(other) {
        return true;
    }
    // A manifest without a priority has none to compare.
    let known = |pod: &Pod| {
        (pod.source == PodSource::Api || pod.spec.priority != 0).then_some(pod.spec.priority)
    };
    matches!((known(pod), known(other)), (Some(mine), Some(theirs)) if mine > theirs)
}

/// What is still missing when these pods are gone.
fn without<'n, 'a: 'c, 'c>(
    needs: &Needs<'n>,
    gone: impl Iterator<Item = &'c Candidate<'a>>,
) -> Needs<'n> {
    let mut left = needs.clone();
    for candidate in gone {
        for (shortage, amount) in &mut left {
            *amount = amount.saturating_sub(candidate.frees(&shortage.name));
        }
    }
    left.retain(|(_, amount)| *amount > 0);
    left
}

/// Takes pods until nothing is missing, each time the one that leaves the least; of two such the
/// one that requests less. `None` if all of them are not enough.
fn nearest<'a>(candidates: &[Candidate<'a>], needs: &Needs<'_>) -> Option<Vec<Candidate<'a>>> {
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
        needs = without(&needs, std::iter::once(&taken));
        chosen.push(taken);
    }
    Some(chosen)
}

/// How far a pod's end is from enough: the sum of the squares of the shares that would be missing.
#[expect(
    clippy::cast_precision_loss,
    reason = "shares are compared, not counted"
)]
fn distance(candidate: &Candidate<'_>, needs: &Needs<'_>) -> f64 {
    let shares = needs.iter().map(|(shortage, amount)| {
        let left = amount.saturating_sub(candidate.frees(&shortage.name));
        (left as f64 / *amount as f64).powi(2)
    });
    shares.sum()
}
