//! The sum of a pod's requests.

use std::collections::BTreeMap;

use rubelet_api::{pod::Pod, resources::ResourceAmounts};

use crate::{node_status::resources::hugepages_name, pod_resources::effective};

/// The requests of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodRequests {
    /// Thousandths of a core.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
    /// Bytes.
    pub ephemeral_storage: u64,
    /// Huge pages in bytes and extended resources, by name.
    pub scalars: BTreeMap<Box<str>, u64>,
}

/// Adds up a pod's requests: containers and sidecars together, or an init container with the
/// sidecars before it if that is more; or what the pod requests itself; plus the pod overhead.
#[must_use]
pub(crate) fn pod_requests(pod: &Pod) -> PodRequests {
    let spec = &pod.spec;
    let own = spec.resources.as_ref().map(|own| &own.requests);
    // Of what the pod requests itself, its containers use a part.
    let sum = |take: &dyn Fn(&ResourceAmounts) -> Option<u64>| {
        let containers = || {
            effective(spec, |container| {
                take(&container.resources.requests).unwrap_or(0)
            })
        };
        let requested = own.and_then(take).unwrap_or_else(containers);
        requested.saturating_add(take(&spec.overhead).unwrap_or(0))
    };
    let mut scalars = BTreeMap::new();
    for amounts in spec
        .all_containers()
        .map(|container| &container.resources.requests)
        .chain(own)
        .chain([&spec.overhead])
    {
        for (size, _) in &amounts.hugepages {
            scalars
                .entry(hugepages_name(*size))
                .or_insert_with(|| sum(&|amounts| of(&amounts.hugepages, size)));
        }
        for (name, _) in &amounts.extended {
            scalars
                .entry(name.clone())
                .or_insert_with(|| sum(&|amounts| of(&amounts.extended, name)));
        }
    }
    PodRequests {
        cpu: sum(&|amounts| amounts.cpu),
        memory: sum(&|amounts| amounts.memory),
        ephemeral_storage: sum(&|amounts| amounts.ephemeral_storage),
        scalars,
    }
}

fn of<K: PartialEq>(list: &[(K, u64)], key: &K) -> Option<u64> {
    let found = list.iter().find(|(known, _)| known == key);
    found.map(|(_, amount)| *amount)
}
