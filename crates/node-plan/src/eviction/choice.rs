//! The pod that goes, at most one in a round.

use std::time::Duration;

use rubelet_base::PodUid;

use super::{
    EvictionCandidate, EvictionPolicy, EvictionSignal, FileSystemLayout, Shortage,
    message::eviction_texts, rank::rank,
};
use crate::critical::is_critical;

/// The eviction of one pod.
#[derive(Debug, Clone, PartialEq)]
pub struct PodEviction {
    /// The pod.
    pub uid: PodUid,
    /// The signal, for metrics.
    pub signal: EvictionSignal,
    /// Its grace period.
    pub grace: Duration,
    /// `status.message`, the message of the event and of the condition `DisruptionTarget`.
    pub message: String,
    /// Annotations of the event.
    pub annotations: Vec<(&'static str, String)>,
}

/// What a round does about a shortage that the node cannot end by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum EvictionChoice {
    /// Evict this pod.
    Evict(PodEviction),
    /// The first pod to evict is being terminated already: what it frees may be enough.
    AwaitEnd(PodUid),
    /// There is no pod that may be evicted.
    NoCandidate,
}

/// Chooses the pod to evict for a shortage. Critical pods are never evicted: those with a critical
/// priority, and static pods, which would not be started again.
#[must_use]
pub fn choose(
    policy: &EvictionPolicy,
    layout: FileSystemLayout,
    shortage: &Shortage,
    candidates: &[EvictionCandidate<'_>],
) -> EvictionChoice {
    let signal = shortage.threshold.signal;
    let mut candidates: Vec<EvictionCandidate<'_>> = candidates
        .iter()
        .filter(|candidate| !is_critical(candidate.pod))
        .copied()
        .collect();
    rank(&mut candidates, signal, layout);
    let Some(EvictionCandidate {
        pod,
        usage,
        is_leaving,
    }) = candidates.first().copied()
    else {
        return EvictionChoice::NoCandidate;
    };
    if is_leaving {
        return EvictionChoice::AwaitEnd(pod.uid.clone());
    }
    let (message, annotations) = eviction_texts(shortage, pod, usage);
    EvictionChoice::Evict(PodEviction {
        uid: pod.uid.clone(),
        signal,
        grace: policy.pod_grace(&shortage.threshold, pod.spec.termination_grace_period),
        message,
        annotations,
    })
}
