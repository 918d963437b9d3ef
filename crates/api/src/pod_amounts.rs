//! Requests and limits of a whole pod: of its containers and sidecars together, or of one init container beside the
//! sidecars before it where that is more; where the pod has an amount of its own, that one; and what the sandbox needs.
//!
//! Source of the rules: `PodRequests` and `PodLimits` in `k8s.io/component-helpers/resource` of Kubernetes 1.36.

use std::collections::BTreeMap;

use crate::{
    aggregation::aggregate,
    container::Container,
    pod::PodSpec,
    resource_name::{CPU, EPHEMERAL_STORAGE, MEMORY, hugepages_name},
    resources::{ResourceAmounts, Resources},
};

/// Amounts by the name of the resource: thousandths of a core, bytes, and counts of extended resources.
pub type Amounts = BTreeMap<Box<str>, u64>;

/// What the pod requests, with its overhead.
#[must_use]
pub fn requests(spec: &PodSpec) -> Amounts {
    let mut sum = together(spec, |resources| &resources.requests);
    for (name, more) in amounts(&spec.overhead) {
        let amount = sum.entry(name).or_default();
        *amount = amount.saturating_add(more);
    }
    sum
}

/// The limits that were written, with the pod's overhead. Not every container has to have one: see [`limit`].
#[must_use]
pub fn limits(spec: &PodSpec) -> Amounts {
    let mut sum = together(spec, |resources| &resources.limits);
    for (name, more) in amounts(&spec.overhead) {
        // What has no limit has none with the overhead, either.
        if let Some(limit) = sum.get_mut(&name).filter(|limit| **limit > 0) {
            *limit = limit.saturating_add(more);
        }
    }
    sum
}

/// The one of [`limits`] that holds for all of the pod: there is none where a container may take what it wants, unless
/// the pod has a limit of its own. A limit of 0 is none.
#[must_use]
pub fn limit(spec: &PodSpec, limits: &Amounts, name: &str) -> Option<u64> {
    let of = |resources: &Resources| amounts(&resources.limits).get(name).copied();
    let own = spec.resources.as_ref().and_then(of);
    let is_set = |limit: &u64| *limit > 0;
    let mut containers = spec.all_containers();
    let holds = own.is_some()
        || containers.all(|one| of(&one.resources).is_some_and(|limit| is_set(&limit)));
    limits.get(name).copied().filter(is_set).filter(|_| holds)
}

/// Each amount that is written.
#[must_use]
pub fn amounts(written: &ResourceAmounts) -> Amounts {
    let single = [
        (CPU, written.cpu),
        (MEMORY, written.memory),
        (EPHEMERAL_STORAGE, written.ephemeral_storage),
    ];
    let single = single
        .into_iter()
        .filter_map(|(name, amount)| Some((name.into(), amount?)));
    let pages = written.hugepages.iter();
    let pages = pages.map(|(size, amount)| (hugepages_name(*size), *amount));
    single
        .chain(pages)
        .chain(written.extended.iter().cloned())
        .collect()
}

/// Of the containers; where the pod has an amount of its own, that one: its containers use a part of it.
fn together(spec: &PodSpec, take: fn(&Resources) -> &ResourceAmounts) -> Amounts {
    let of = |container: &Container| amounts(take(&container.resources));
    let mut sum = Amounts::new();
    for name in spec.all_containers().flat_map(|one| of(one).into_keys()) {
        let amount = |one: &Container| of(one).get(&name).copied().unwrap_or(0);
        let amount = aggregate(&spec.init_containers, &spec.containers, amount);
        sum.insert(name, amount);
    }
    sum.extend(spec.resources.iter().flat_map(|own| amounts(take(own))));
    sum
}
