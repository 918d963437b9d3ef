//! Requests and limits of a whole pod: of its containers and sidecars together, or of one init container beside the
//! sidecars before it where that is more; where the pod has an amount of its own, that one; and what the sandbox needs.
//!
//! Source of the rules: `PodRequests` and `PodLimits` in `k8s.io/component-helpers/resource` of Kubernetes 1.36.

use std::collections::BTreeMap;

use crate::{
    aggregation::aggregate,
    container::Container,
    pod::PodSpec,
    resource_name::{CPU, EPHEMERAL_STORAGE, MEMORY, hugepages_name, hugepages_size},
    resources::{ResourceAmounts, Resources},
};

/// Amounts by the name of the resource: thousandths of a core, bytes, and counts of extended resources.
pub type Amounts = BTreeMap<Box<str>, u64>;

/// The requests or the limits.
type Side = fn(&Resources) -> &ResourceAmounts;

const REQUESTS: Side = |resources| &resources.requests;
const LIMITS: Side = |resources| &resources.limits;

/// Resources that have a field of their own.
const SINGLE: [&str; 3] = [CPU, MEMORY, EPHEMERAL_STORAGE];

/// What is written of a resource.
fn amount(written: &ResourceAmounts, name: &str) -> Option<u64> {
    fn of<K>(list: &[(K, u64)], is: impl Fn(&K) -> bool) -> Option<u64> {
        let found = list.iter().find(|(known, _)| is(known));
        found.map(|(_, amount)| *amount)
    }
    match name {
        CPU => written.cpu,
        MEMORY => written.memory,
        EPHEMERAL_STORAGE => written.ephemeral_storage,
        name => match hugepages_size(name) {
            Some(size) => of(&written.hugepages, |known| *known == size),
            None => of(&written.extended, |known| **known == *name),
        },
    }
}

/// Of the containers; where the pod has an amount of its own, that one: its containers use a part of it.
fn together(spec: &PodSpec, side: Side, name: &str) -> Option<u64> {
    let own = spec.resources.as_ref();
    own.and_then(|own| amount(side(own), name)).or_else(|| {
        let of = |one: &Container| amount(side(&one.resources), name);
        let is_written = spec.all_containers().any(|one| of(one).is_some());
        let most = |one: &Container| of(one).unwrap_or(0);
        is_written.then(|| aggregate(&spec.init_containers, &spec.containers, most))
    })
}

/// What the pod requests of a resource, with its overhead.
#[must_use]
pub fn request(spec: &PodSpec, name: &str) -> Option<u64> {
    let requested = together(spec, REQUESTS, name);
    match (requested, amount(&spec.overhead, name)) {
        (Some(requested), Some(more)) => Some(requested.saturating_add(more)),
        (requested, more) => requested.or(more),
    }
}

/// All that the pod requests, with its overhead.
#[must_use]
pub fn requests(spec: &PodSpec) -> Amounts {
    let of = |name: &str| request(spec, name);
    with_single(scalar_requests(spec), of)
}

/// The huge pages and extended resources that the pod requests, with its overhead.
#[must_use]
pub fn scalar_requests(spec: &PodSpec) -> Amounts {
    let written = sides(spec, REQUESTS).chain([&spec.overhead]);
    scalars(written, |name| request(spec, name))
}

/// The huge pages and extended resources that the pod requests, without its overhead.
#[must_use]
pub fn scalar_requests_without_overhead(spec: &PodSpec) -> Amounts {
    let of = |name: &str| together(spec, REQUESTS, name);
    scalars(sides(spec, REQUESTS), of)
}

/// The limits that were written, with the pod's overhead. Not every container has to have one: see [`limit`].
#[must_use]
pub fn limits(spec: &PodSpec) -> Amounts {
    let of = |name: &str| written_limit(spec, name);
    with_single(scalars(sides(spec, LIMITS), of), of)
}

/// The limit of a resource that holds for all of the pod, with its overhead: there is none where a container may take
/// what it wants, unless the pod has a limit of its own. A limit of 0 is none.
#[must_use]
pub fn limit(spec: &PodSpec, name: &str) -> Option<u64> {
    let of = |resources: &Resources| amount(&resources.limits, name);
    let has_own = spec.resources.as_ref().and_then(of).is_some();
    let is_set = |one: &Container| of(&one.resources).is_some_and(|limit| limit > 0);
    let holds = has_own || spec.all_containers().all(is_set);
    written_limit(spec, name).filter(|limit| holds && *limit > 0)
}

fn written_limit(spec: &PodSpec, name: &str) -> Option<u64> {
    let limit = together(spec, LIMITS, name)?;
    // What has no limit has none with the overhead, either.
    let more = amount(&spec.overhead, name).filter(|_| limit > 0);
    Some(limit.saturating_add(more.unwrap_or(0)))
}

/// Each amount that is written.
#[must_use]
pub fn amounts(written: &ResourceAmounts) -> Amounts {
    let of = |name: &str| amount(written, name);
    with_single(scalars([written], of), of)
}

/// What the pod and its containers have of one side.
fn sides(spec: &PodSpec, side: Side) -> impl Iterator<Item = &ResourceAmounts> {
    let own = spec.resources.iter().map(side);
    own.chain(spec.all_containers().map(move |one| side(&one.resources)))
}

/// The huge pages and extended resources among what is written.
fn scalars<'a>(
    written: impl IntoIterator<Item = &'a ResourceAmounts>,
    of: impl Fn(&str) -> Option<u64>,
) -> Amounts {
    let names = written.into_iter().flat_map(|written| {
        let pages = written
            .hugepages
            .iter()
            .map(|(size, _)| hugepages_name(*size));
        pages.chain(written.extended.iter().map(|(name, _)| name.clone()))
    });
    names
        .filter_map(|name| of(&name).map(|amount| (name, amount)))
        .collect()
}

fn with_single(mut all: Amounts, of: impl Fn(&str) -> Option<u64>) -> Amounts {
    let single = SINGLE.iter();
    all.extend(single.filter_map(|name| Some(((*name).into(), of(name)?))));
    all
}
