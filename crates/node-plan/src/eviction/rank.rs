//! The order in which pods are evicted.

use std::cmp::Reverse;

use super::{EvictionCandidate, EvictionSignal, FileSystemLayout, StarvedResource};
use crate::admission::pod_requests;

/// How a pod's usage compares with its requests. A pod whose usage is unknown is evicted before all
/// others, as in the kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Excess {
    Unknown,
    OverRequests,
    WithinRequests,
}

/// The place of a pod in the order, by the kubelet's rules (`rankMemoryPressure`,
/// `rankDiskPressureFunc`, `rankPIDPressure`): pods over their requests, then low priorities, then
/// large usage beyond the requests; for processes only priority and number. Names break ties, so
/// that the order does not depend on that of a list.
type PlaceInOrder<'a> = (Excess, i32, bool, Reverse<i128>, (&'a str, &'a str));

/// Sorts pods, the first to evict first.
pub(crate) fn rank(
    candidates: &mut [EvictionCandidate<'_>],
    signal: EvictionSignal,
    layout: FileSystemLayout,
) {
    candidates.sort_by_cached_key(|candidate| place(candidate, signal, layout));
}

fn place<'a>(
    candidate: &EvictionCandidate<'a>,
    signal: EvictionSignal,
    layout: FileSystemLayout,
) -> PlaceInOrder<'a> {
    let pod = candidate.pod;
    let name = (&*pod.name.namespace, &*pod.name.name);
    let priority = pod.spec.priority;
    let Some(usage) = candidate.usage else {
        return (Excess::Unknown, priority, false, Reverse(0), name);
    };
    let requests = pod_requests(pod);
    let disk = || usage.disk(layout.disk_parts(signal));
    let (used, requested) = match signal.resource() {
        StarvedResource::Memory => (usage.memory, requests.memory),
        StarvedResource::EphemeralStorage => (disk().bytes, requests.ephemeral_storage),
        // Inodes cannot be requested. The kubelet subtracts the requested bytes, which says nothing
        // about inodes.
        StarvedResource::Inodes => (disk().inodes, 0),
        StarvedResource::Pids => (usage.pids, 0),
    };
    let excess = match signal.resource() {
        // Processes cannot be requested, and those of an important pod count less than any of
        // others.
        StarvedResource::Pids => Excess::Unknown,
        _ if used > requested => Excess::OverRequests,
        _ => Excess::WithinRequests,
    };
    let beyond = i128::from(used) - i128::from(requested);
    (excess, priority, true, Reverse(beyond), name)
}
