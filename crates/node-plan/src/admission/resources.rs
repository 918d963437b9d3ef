//! Resource requests against the node's allocatable resources.

use rubelet_api::{pod::Pod, resource_name::hugepages_name};

use super::{AdmissionNode, PodRequests, Rejection, pod_requests};
use crate::node_status::resources::is_extended;

/// A resource of which the node has too little.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shortage {
    /// Its name.
    pub(super) name: Box<str>,
    requested: u64,
    used: u64,
    capacity: u64,
}

impl Shortage {
    /// The rejection of the pod.
    pub(super) fn rejection(&self) -> Rejection {
        let Self {
            name,
            requested,
            used,
            capacity,
        } = self;
        Rejection::new(
            &format!("OutOf{name}"),
            format!(
                "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, \
                 capacity: {capacity}"
            ),
        )
    }

    /// The amount that is missing.
    pub(super) fn missing(&self) -> u64 {
        let left = self.capacity.saturating_sub(self.used);
        let over = self.used.saturating_sub(self.capacity);
        self.requested.saturating_sub(left).saturating_add(over)
    }
}

/// All shortages, in upstream's order.
pub(super) fn shortages(pod: &Pod, node: &AdmissionNode, running: &[&Pod]) -> Vec<Shortage> {
    let mut found = Vec::new();
    let pods = u64::try_from(running.len()).unwrap_or(u64::MAX);
    if pods.saturating_add(1) > node.allocatable.pods {
        found.push(out_of("pods", 1, pods, node.allocatable.pods));
    }
    let wanted = pod_requests(pod);
    if wanted == PodRequests::default() {
        return found;
    }
    let used: Vec<PodRequests> = running.iter().map(|pod| pod_requests(pod)).collect();
    let mut check = |name: &str, capacity: u64, take: &dyn Fn(&PodRequests) -> u64| {
        let requested = take(&wanted);
        let used = used
            .iter()
            .fold(0u64, |sum, one| sum.saturating_add(take(one)));
        if requested > 0 && requested > capacity.saturating_sub(used) {
            found.push(out_of(name, requested, used, capacity));
        }
    };
    let left = &node.allocatable;
    check("cpu", left.cpu, &|requests| requests.cpu);
    check("memory", left.memory, &|requests| requests.memory);
    check(
        "ephemeral-storage",
        left.ephemeral_storage.unwrap_or(0),
        &|requests| requests.ephemeral_storage,
    );
    for name in wanted.scalars.keys() {
        let of_name = |requests: &PodRequests| requests.scalars.get(name).copied().unwrap_or(0);
        if is_extended(name) {
            // Resources that the node does not have are accounted by the cluster.
            if let Some(capacity) = node.extended.get(name) {
                check(name, *capacity, &of_name);
            }
        } else {
            let mut pools = left.hugepages.iter();
            let pool = pools.find(|(size, _)| hugepages_name(**size) == *name);
            check(name, pool.map_or(0, |(_, bytes)| *bytes), &of_name);
        }
    }
    found
}

fn out_of(name: &str, requested: u64, used: u64, capacity: u64) -> Shortage {
    Shortage {
        name: name.into(),
        requested,
        used,
        capacity,
    }
}
