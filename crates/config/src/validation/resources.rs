//! Reserved resources, and the placement of CPUs and memory.

use super::{Check, CheckResult, Violation, alternatives, at_least, one_of, range, violation};
use crate::quantity::{Sign, sign};
use rubelet_yaml::join_path;
use std::collections::{BTreeMap, BTreeSet};

const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];
const CPU_OPTIONS: [&str; 3] = [
    "full-pcpus-only",
    "strict-cpu-reservation",
    "prefer-align-cpus-by-uncorecache",
];
const CPU_OPTIONS_BETA: [&str; 1] = ["distribute-cpus-across-numa"];
const CPU_OPTIONS_ALPHA: [&str; 2] = ["align-by-socket", "distribute-cpus-across-cores"];
const TOPOLOGY_OPTIONS: [&str; 2] = ["prefer-closest-numa-nodes", "max-allowable-numa-nodes"];
const TOPOLOGY_POLICIES: [&str; 4] = ["none", "best-effort", "restricted", "single-numa-node"];

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    range("oomScoreAdj", config.oom_score_adj, -1000, 1000)?;
    at_least("maxOpenFiles", config.max_open_files, 0)?;
    if !config.system_cgroups.is_empty() && config.cgroup_root.is_empty() {
        return violation(["systemCgroups"], "needs cgroupRoot".to_owned());
    }
    managers(check)?;
    reserved("systemReserved", &config.system_reserved)?;
    reserved("kubeReserved", &config.kube_reserved)?;
    enforcement(check)?;
    reserved_cpus(check)?;
    reserved_memory(check)?;
    qos_reserved(check)?;
    memory_qos(check)
}

fn managers(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    one_of(
        "cpuManagerPolicy",
        &config.cpu_manager_policy,
        &["none", "static"],
    )?;
    one_of(
        "memoryManagerPolicy",
        &config.memory_manager_policy,
        &["None", "Static"],
    )?;
    one_of(
        "topologyManagerPolicy",
        &config.topology_manager_policy,
        &TOPOLOGY_POLICIES,
    )?;
    one_of(
        "topologyManagerScope",
        &config.topology_manager_scope,
        &["container", "pod"],
    )?;
    for name in config.cpu_manager_policy_options.keys() {
        let field = join_path("cpuManagerPolicyOptions", name);
        let gate = if CPU_OPTIONS.contains(&name.as_str()) {
            continue;
        } else if CPU_OPTIONS_BETA.contains(&name.as_str()) {
            "CPUManagerPolicyBetaOptions"
        } else if CPU_OPTIONS_ALPHA.contains(&name.as_str()) {
            "CPUManagerPolicyAlphaOptions"
        } else {
            let all = [&CPU_OPTIONS[..], &CPU_OPTIONS_BETA, &CPU_OPTIONS_ALPHA].concat();
            return violation(
                [field.as_str()],
                format!("unknown option; allowed are {}", alternatives(&all)),
            );
        };
        if !check.gates.enabled(gate) {
            return violation([field.as_str()], format!("needs the feature gate {gate}"));
        }
    }
    for name in config.topology_manager_policy_options.keys() {
        if !TOPOLOGY_OPTIONS.contains(&name.as_str()) {
            let field = join_path("topologyManagerPolicyOptions", name);
            let message = format!(
                "unknown option; allowed are {}",
                alternatives(&TOPOLOGY_OPTIONS)
            );
            return violation([field.as_str()], message);
        }
    }
    Ok(())
}

fn reserved(field: &str, resources: &BTreeMap<String, String>) -> CheckResult {
    for (name, amount) in resources {
        let field = join_path(field, name);
        if !RESERVABLE.contains(&name.as_str()) {
            let message = format!(
                "cannot be reserved; allowed are {}",
                alternatives(&RESERVABLE)
            );
            return violation([field.as_str()], message);
        }
        if !matches!(sign(amount), Some(Sign::Zero | Sign::Positive)) {
            let message = format!("must be a quantity such as 500m or 1Gi, is {amount:?}");
            return violation([field.as_str()], message);
        }
    }
    Ok(())
}

fn enforcement(check: &Check<'_>) -> CheckResult {
    const FIELD: &str = "enforceNodeAllocatable";
    let config = check.config;
    let allowed = [
        "none",
        "pods",
        "system-reserved",
        "system-reserved-compressible",
        "kube-reserved",
        "kube-reserved-compressible",
    ];
    let mut seen = BTreeSet::new();
    for (index, value) in config.enforce_node_allocatable.iter().enumerate() {
        let item = format!("{FIELD}[{index}]");
        one_of(&item, value, &allowed)?;
        if !seen.insert(value.as_str()) {
            return violation([item.as_str()], format!("{value:?} is given twice"));
        }
        let (owner, reserved, cgroup_field, cgroup) = match value.as_str() {
            "none" if config.enforce_node_allocatable.len() > 1 => {
                return violation(
                    [item.as_str()],
                    "\"none\" cannot be combined with other values".to_owned(),
                );
            }
            "none" => continue,
            "pods" => ("", None, "", "/"),
            name if name.starts_with("system") => (
                "system",
                Some(&config.system_reserved),
                "systemReservedCgroup",
                config.system_reserved_cgroup.as_str(),
            ),
            _ => (
                "kube",
                Some(&config.kube_reserved),
                "kubeReservedCgroup",
                config.kube_reserved_cgroup.as_str(),
            ),
        };
        if cgroup.is_empty() {
            return violation([item.as_str()], format!("{value:?} needs {cgroup_field}"));
        }
        if reserved.is_some_and(BTreeMap::is_empty) {
            let message = format!("{value:?} needs {owner}Reserved");
            return violation([item.as_str()], message);
        }
        if !owner.is_empty() && seen.iter().filter(|name| name.starts_with(owner)).count() > 1 {
            let message = format!(
                "\"{owner}-reserved\" and \"{owner}-reserved-compressible\" exclude each other"
            );
            return violation([item.as_str()], message);
        }
        if !config.cgroups_per_qos {
            let message = format!("{value:?} needs cgroupsPerQOS to be true");
            return violation([item.as_str(), "cgroupsPerQOS"], message);
        }
    }
    Ok(())
}

fn reserved_cpus(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    let cpus = config.reserved_system_cpus.as_str();
    if cpus.is_empty() {
        return Ok(());
    }
    if !is_cpu_set(cpus) {
        let message = format!("must be a list of CPUs such as 0-3,6, is {cpus:?}");
        return violation(["reservedSystemCPUs"], message);
    }
    for (field, cgroup) in [
        ("systemReservedCgroup", &config.system_reserved_cgroup),
        ("kubeReservedCgroup", &config.kube_reserved_cgroup),
    ] {
        if !cgroup.is_empty() {
            let message = format!("cannot be used together with {field}");
            return violation(["reservedSystemCPUs"], message);
        }
    }
    Ok(())
}

fn is_cpu_set(text: &str) -> bool {
    text.split(',').all(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) => first <= last,
            _ => false,
        }
    })
}

fn reserved_memory(check: &Check<'_>) -> CheckResult {
    let mut seen = BTreeSet::new();
    for (index, reservation) in check.config.reserved_memory.iter().enumerate() {
        for (name, amount) in &reservation.limits {
            let field = join_path(&format!("reservedMemory[{index}].limits"), name);
            let problem = if name != "memory" && !name.starts_with("hugepages-") {
                Some("must be \"memory\" or \"hugepages-SIZE\"".to_owned())
            } else if sign(&amount.0) != Some(Sign::Positive) {
                Some(format!("must be more than 0, is {:?}", amount.0))
            } else if !seen.insert((reservation.numa_node, name)) {
                Some(format!(
                    "is given twice for NUMA node {}",
                    reservation.numa_node
                ))
            } else {
                None
            };
            if let Some(message) = problem {
                return Err(Violation {
                    fields: vec![field],
                    message,
                });
            }
        }
    }
    Ok(())
}

fn qos_reserved(check: &Check<'_>) -> CheckResult {
    for (name, share) in &check.config.qos_reserved {
        let field = join_path("qosReserved", name);
        let percent = share
            .strip_suffix('%')
            .and_then(|number| number.parse::<u8>().ok());
        let message = if !check.gates.enabled("QOSReserved") {
            "needs the feature gate QOSReserved".to_owned()
        } else if name != "memory" {
            "cannot be reserved; allowed is \"memory\"".to_owned()
        } else if percent.is_none_or(|percent| percent > 100) {
            format!("must be from 0% to 100%, is {share:?}")
        } else {
            continue;
        };
        return Err(Violation {
            fields: vec![field],
            message,
        });
    }
    Ok(())
}

fn memory_qos(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    let factor = config.memory_throttling_factor;
    if !(factor > 0.0 && factor <= 1.0) {
        let message = format!("must be more than 0 and at most 1, is {factor}");
        return violation(["memoryThrottlingFactor"], message);
    }
    let field = "memoryReservationPolicy";
    one_of(
        field,
        &config.memory_reservation_policy,
        &["None", "TieredReservation"],
    )?;
    let tiered = config.memory_reservation_policy == "TieredReservation";
    match tiered && !check.gates.enabled("MemoryQoS") {
        true => violation(
            [field],
            "\"TieredReservation\" needs the feature gate MemoryQoS".to_owned(),
        ),
        false => Ok(()),
    }
}
