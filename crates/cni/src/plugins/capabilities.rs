//! `CNI_ARGS` and capability arguments (`runtimeConfig`) of a pod, as containerd and CRI-O pass
//! them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{Cidr, NetworkRefusal, NetworkRequest};

/// `CNI_ARGS` of a pod.
///
/// # Errors
/// A name contains a separator of arguments.
pub(super) fn args(request: &NetworkRequest) -> Result<Vec<(String, String)>, NetworkRefusal> {
    let args = [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", &request.pod_namespace),
        ("K8S_POD_NAME", &request.pod_name),
        ("K8S_POD_INFRA_CONTAINER_ID", &request.sandbox),
        ("K8S_POD_UID", &request.pod_uid),
    ];
    let separates = |character: char| "=;".contains(character) || character.is_control();
    if let Some((key, value)) = args.iter().find(|(_, value)| value.contains(separates)) {
        return Err(NetworkRefusal::CniArgument {
            key,
            value: (*value).to_owned(),
        });
    }
    Ok(args
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec())
}

/// `CNI_ARGS` as one text.
pub(super) fn joined(args: &[(String, String)]) -> String {
    let pairs: Vec<String> = args
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(";")
}

/// The capability arguments of a pod.
///
/// # Errors
/// An annotation has an invalid value.
pub(super) fn values(
    request: &NetworkRequest,
    pod_cidrs: &[Cidr],
) -> Result<Map<String, Value>, NetworkRefusal> {
    let mut values = Map::new();
    let mut set = |name: &str, value: Value| {
        values.insert(name.to_owned(), value);
    };
    if !request.port_mappings.is_empty() {
        let ports = request.port_mappings.iter().map(|port| {
            json!({
                "hostPort": port.host_port,
                "containerPort": port.container_port,
                "protocol": port.protocol.to_string(),
                "hostIP": port.host_ip.map(|ip| ip.to_string()).unwrap_or_default(),
            })
        });
        set("portMappings", Value::Array(ports.collect()));
    }
    if let Some(bandwidth) = bandwidth(&request.annotations)? {
        set("bandwidth", bandwidth);
    }
    if !pod_cidrs.is_empty() {
        let ranges = pod_cidrs
            .iter()
            .map(|cidr| json!([{ "subnet": cidr.to_string() }]));
        set("ipRanges", Value::Array(ranges.collect()));
    }
    let dns = &request.dns;
    if !(dns.servers.is_empty() && dns.searches.is_empty() && dns.options.is_empty()) {
        set(
            "dns",
            json!({ "servers": dns.servers, "searches": dns.searches, "options": dns.options }),
        );
    }
    if !request.cgroup_parent.is_empty() {
        set("cgroupPath", request.cgroup_parent.as_str().into());
    }
    if !request.annotations.is_empty() {
        set(
            "io.kubernetes.cri.pod-annotations",
            json!(request.annotations),
        );
    }
    Ok(values)
}

fn bandwidth(annotations: &BTreeMap<String, String>) -> Result<Option<Value>, NetworkRefusal> {
    let mut value = Map::new();
    for direction in ["ingress", "egress"] {
        let name = format!("kubernetes.io/{direction}-bandwidth");
        let Some(text) = annotations.get(&name) else {
            continue;
        };
        // Kubernetes' limits, in bits per second.
        let rate = bits(text)
            .filter(|rate| (1_000..=1_000_000_000_000_000).contains(rate))
            .ok_or_else(|| NetworkRefusal::Bandwidth {
                annotation: name.clone(),
                value: text.clone(),
            })?;
        value.insert(format!("{direction}Rate"), rate.into());
        value.insert(format!("{direction}Burst"), i32::MAX.into());
    }
    Ok((!value.is_empty()).then_some(Value::Object(value)))
}

/// A quantity without a fraction.
fn bits(text: &str) -> Option<u64> {
    let digits = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let factor = match &text[digits..] {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "P" => 1_000_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests;
