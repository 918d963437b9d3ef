//! Requests and limits of a whole pod: `spec.resources`.
//!
//! Source of the rules: `defaultPodRequests` and `defaultHugePagePodLimits` in `pkg/apis/core/v1`, and
//! `validatePodResources` in `pkg/apis/core/validation` of Kubernetes 1.36.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{api::core::v1 as k8s, apimachinery::pkg::api::resource::Quantity as Text};

use super::{Errors, Path, requirements};
use crate::{
    aggregation::aggregate,
    container::Container,
    resource_name::is_hugepages,
    resources::{Bytes, ResourceAmounts, Resources},
};

const KNOWN: [&str; 3] = ["cpu", "memory", "hugepages-SIZE"];

/// The init and regular containers of a pod.
#[derive(Clone, Copy)]
pub(super) struct Containers<'a> {
    pub(super) init: &'a [Container],
    pub(super) regular: &'a [Container],
}

impl<'a> Containers<'a> {
    fn all(self) -> impl Iterator<Item = &'a Container> {
        self.init.iter().chain(self.regular)
    }

    /// What they request or are limited to together; `None` if none has the resource.
    fn sum(self, take: impl Fn(&Container) -> Option<u64>) -> Option<u64> {
        let written = self.all().any(|one| take(one).is_some());
        written.then(|| aggregate(self.init, self.regular, |one| take(one).unwrap_or(0)))
    }

    /// Sizes of the huge pages that they are limited to.
    fn page_sizes(self) -> BTreeSet<Bytes> {
        let pools = self.all().flat_map(|one| &one.resources.limits.hugepages);
        pools.map(|(size, _)| *size).collect()
    }
}

/// Converts `spec.resources` with its defaults: a request that is missing is what the containers
/// request together, or else the limit; huge pages that are missing are those of the containers.
pub(super) fn convert(
    written: Option<&k8s::ResourceRequirements>,
    containers: Containers<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<Resources> {
    let written = written?;
    let mut resources = requirements::convert(Some(&known(written, path, errors)), path, errors);
    let has = |list: &Option<BTreeMap<String, Text>>, name: &str| {
        list.as_ref().is_some_and(|list| list.contains_key(name))
    };
    if resources == Resources::default() {
        return Some(resources);
    }
    let requests = &mut resources.requests;
    if !has(&written.requests, "cpu") {
        let sum = containers.sum(|one| one.resources.requests.cpu);
        requests.cpu = sum.or(resources.limits.cpu);
    }
    if !has(&written.requests, "memory") {
        let sum = containers.sum(|one| one.resources.requests.memory);
        requests.memory = sum.or(resources.limits.memory);
    }
    for size in containers.page_sizes() {
        if pages(&resources.limits, size).is_none() && pages(requests, size).is_none() {
            let sum = containers
                .sum(|one| pages(&one.resources.limits, size))
                .unwrap_or(0);
            requests.hugepages.push((size, sum));
            resources.limits.hugepages.push((size, sum));
        }
    }
    requests.hugepages.sort_unstable();
    resources.limits.hugepages.sort_unstable();
    check(&resources, containers, path, errors);
    Some(resources)
}

/// Without the resources that a pod has only by its containers, which are mistakes.
fn known(
    written: &k8s::ResourceRequirements,
    path: &Path<'_>,
    errors: &mut Errors,
) -> k8s::ResourceRequirements {
    let mut keep = |list: &Option<BTreeMap<String, Text>>, kind: &str| {
        let (mut list, path) = (list.clone().unwrap_or_default(), path.child(kind));
        list.retain(|name, _| {
            let known = matches!(name.as_str(), "cpu" | "memory") || is_hugepages(name);
            if !known {
                errors.unsupported(&path.key(name), name, &KNOWN);
            }
            known
        });
        Some(list)
    };
    k8s::ResourceRequirements {
        claims: None,
        limits: keep(&written.limits, "limits"),
        requests: keep(&written.requests, "requests"),
    }
}

fn pages(amounts: &ResourceAmounts, size: Bytes) -> Option<Bytes> {
    let found = amounts.hugepages.iter().find(|(known, _)| *known == size);
    found.map(|(_, bytes)| *bytes)
}

/// The containers together may not request more than the pod, nor one of them be limited to more.
fn check(resources: &Resources, containers: Containers<'_>, path: &Path<'_>, errors: &mut Errors) {
    let Resources { requests, limits } = resources;
    let (requests_path, limits_path) = (path.child("requests"), path.child("limits"));
    for (name, take) in [
        ("cpu", cpu as fn(&ResourceAmounts) -> Option<u64>),
        ("memory", memory as fn(&ResourceAmounts) -> Option<u64>),
    ] {
        let sum = containers
            .sum(|one| take(&one.resources.requests))
            .unwrap_or(0);
        let together = format!(
            "must be at least {}, which the containers request together",
            shown(name, sum)
        );
        match (take(requests), take(limits)) {
            (Some(request), _) if sum > request => {
                errors.invalid(&requests_path.key(name), shown(name, request), together);
            }
            (_, Some(limit)) if sum > limit => {
                errors.invalid(&limits_path.key(name), shown(name, limit), together);
            }
            _ => {}
        }
        let regular = containers.regular.iter();
        let most = regular.filter_map(|one| take(&one.resources.limits)).max();
        if let (Some(most), Some(limit)) = (most, take(limits))
            && most > limit
        {
            let detail = format!(
                "must be at least {}, the limit of one of the containers",
                shown(name, most)
            );
            errors.invalid(&limits_path.key(name), shown(name, limit), detail);
        }
    }
    for &(size, limit) in &limits.hugepages {
        let sum = containers.sum(|one| pages(&one.resources.limits, size));
        if let Some(sum) = sum.filter(|sum| *sum > limit) {
            let detail = format!(
                "must be at least {sum} bytes for pages of {size} bytes, the limits of the containers together"
            );
            errors.invalid(&limits_path, limit, detail);
        }
    }
}

fn shown(name: &str, amount: u64) -> String {
    match name {
        "cpu" => format!("{amount}m"),
        _ => amount.to_string(),
    }
}

fn cpu(amounts: &ResourceAmounts) -> Option<u64> {
    amounts.cpu
}

fn memory(amounts: &ResourceAmounts) -> Option<u64> {
    amounts.memory
}
