//! The resources of a whole pod in its status: `allocatedResources` and `resources`.
//!
//! They do not change while a pod runs: what was allocated is what it has.
//!
//! Source of the rules: `convertToAPIPodLevelResourcesStatus` in `pkg/kubelet` of Kubernetes 1.36.

use serde_json::{Map, Value, json};

use crate::{
    amount,
    pod::PodSpec,
    pod_amounts::{Amounts, amounts, limit, limits, requests},
    resource_name::{CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages},
    resources::{ResourceAmounts, Resources},
    status::Phase,
};

/// CPU requests in thousandths of a core that the kernel can't tell from none.
const MIN_CPU_REQUEST: u64 = 2;

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
    let mut limited = own(|own| &own.limits);
    for name in [CPU, MEMORY] {
        if let Some(amount) = requests.get(name)
            && (name != CPU || *amount > MIN_CPU_REQUEST)
        {
            requested.insert(name.into(), *amount);
        }
        if let Some(limit) = limit(spec, name) {
            limited.insert(name.into(), limit);
        }
    }
    (requested, limited)
}

fn list(amounts: &Amounts) -> Value {
    let entries = amounts.iter().map(|(name, amount)| {
        let quantity = match &**name {
            CPU => amount::cpu(*amount),
            MEMORY | EPHEMERAL_STORAGE => amount::bytes(*amount),
            name if is_hugepages(name) => amount::bytes(*amount),
            _ => amount::decimal(*amount),
        };
        (name.to_string(), json!(quantity))
    });
    entries.collect::<Map<_, _>>().into()
}
