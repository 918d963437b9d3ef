//! The resources of a whole pod in its status: `allocatedResources` and `resources`.
//!
//! They do not change while a pod runs: what was allocated is what it has.
//!
//! Source of the rules: `convertToAPIPodLevelResourcesStatus` in `pkg/kubelet`, `PodRequests` and `PodLimits` in
//! `k8s.io/component-helpers/resource` of Kubernetes 1.36.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    aggregation::aggregate,
    container::Container,
    pod::PodSpec,
    resources::{ResourceAmounts, Resources},
    status::Phase,
};

/// CPU requests in thousandths of a core that the kernel can't tell from none.
const MIN_CPU_REQUEST: u64 = 2;

/// Amounts by the name of the resource; those of `cpu` in thousandths.
type Amounts = BTreeMap<String, u64>;

/// Adds both to the Kubernetes form of a status.
pub(super) fn add(json: &mut Value, spec: &PodSpec, phase: Phase) {
    let requests = requests(spec);
    let effective = match phase {
        Phase::Running => in_effect(spec, &requests),
        _ => (requests.clone(), limits(spec)),
    };
    if !requests.is_empty() {
        json["allocatedResources"] = list(&requests);
    }
    let mut resources = Map::new();
    for (name, amounts) in [("limits", &effective.1), ("requests", &effective.0)] {
        if !amounts.is_empty() {
            resources.insert(name.to_owned(), list(amounts));
        }
    }
    json["resources"] = resources.into();
}

/// What cgroups have of a pod that runs: beside the pod's own list, processor time and memory.
fn in_effect(spec: &PodSpec, requests: &Amounts) -> (Amounts, Amounts) {
    let own = spec.resources.as_ref();
    let own = |take: fn(&Resources) -> &ResourceAmounts| {
        own.map(|own| amounts(take(own))).unwrap_or_default()
    };
    let mut requested = own(|own| &own.requests);
    for name in ["cpu", "memory"] {
        if let Some(amount) = requests.get(name)
            && (name != "cpu" || *amount > MIN_CPU_REQUEST)
        {
            requested.insert(name.to_owned(), *amount);
        }
    }
    let mut limited = own(|own| &own.limits);
    let limits = limits(spec);
    for name in ["cpu", "memory"] {
        let of_own = limited.get(name).is_some_and(|limit| *limit > 0);
        let of_all = spec.all_containers().all(|container| {
            let limits = amounts(&container.resources.limits);
            limits.get(name).is_some_and(|limit| *limit > 0)
        });
        if let (Some(limit), true) = (limits.get(name), of_own || of_all) {
            limited.insert(name.to_owned(), *limit);
        }
    }
    (requested, limited)
}

fn requests(spec: &PodSpec) -> Amounts {
    let mut sum = together(spec, |resources| &resources.requests);
    for (name, amount) in amounts(&spec.overhead) {
        *sum.entry(name).or_default() += amount;
    }
    sum
}

fn limits(spec: &PodSpec) -> Amounts {
    let mut sum = together(spec, |resources| &resources.limits);
    for (name, more) in amounts(&spec.overhead) {
        // What has no limit has none with the overhead, either.
        if let Some(limit) = sum.get_mut(&name).filter(|limit| **limit > 0) {
            *limit += more;
        }
    }
    sum
}

/// Of the containers; where the pod has an amount of its own, that one.
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

fn amounts(written: &ResourceAmounts) -> Amounts {
    let single = [
        ("cpu", written.cpu),
        ("memory", written.memory),
        ("ephemeral-storage", written.ephemeral_storage),
    ];
    let single = single
        .into_iter()
        .filter_map(|(name, amount)| Some((name.to_owned(), amount?)));
    let pages = written.hugepages.iter();
    let pages = pages.map(|(size, amount)| (format!("hugepages-{}", bytes(*size)), *amount));
    let extended = written.extended.iter();
    let extended = extended.map(|(name, amount)| (name.to_string(), *amount));
    single.chain(pages).chain(extended).collect()
}

fn list(amounts: &Amounts) -> Value {
    let entries = amounts.iter().map(|(name, amount)| {
        let quantity = match name.as_str() {
            "cpu" if amount % 1000 == 0 => (amount / 1000).to_string(),
            "cpu" => format!("{amount}m"),
            "memory" | "ephemeral-storage" => bytes(*amount),
            name if name.starts_with("hugepages-") => bytes(*amount),
            _ => amount.to_string(),
        };
        (name.clone(), json!(quantity))
    });
    entries.collect::<Map<_, _>>().into()
}

/// As a quantity with the largest binary suffix that loses nothing.
fn bytes(amount: u64) -> String {
    let suffixes = [
        (60, "Ei"),
        (50, "Pi"),
        (40, "Ti"),
        (30, "Gi"),
        (20, "Mi"),
        (10, "Ki"),
    ];
    let fitting = suffixes
        .into_iter()
        .find(|(bits, _)| amount != 0 && amount.trailing_zeros() >= *bits);
    match fitting {
        Some((bits, suffix)) => format!("{}{suffix}", amount >> bits),
        None => amount.to_string(),
    }
}
