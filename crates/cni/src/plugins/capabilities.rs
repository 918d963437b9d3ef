//! What plugins are told of a pod: `CNI_ARGS`, and values for the capabilities they declare, as
//! containerd and CRI-O pass them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{Cidr, NetworkRequest};

/// `CNI_ARGS` of a pod.
///
/// # Errors
/// A name would be read as further arguments; a sentence.
pub(super) fn args(request: &NetworkRequest) -> Result<Vec<(String, String)>, String> {
    let args = [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", &request.pod_namespace),
        ("K8S_POD_NAME", &request.pod_name),
        ("K8S_POD_INFRA_CONTAINER_ID", &request.sandbox),
        ("K8S_POD_UID", &request.pod_uid),
    ];
    let separates = |character: char| "=;".contains(character) || character.is_control();
    if let Some((key, value)) = args.iter().find(|(_, value)| value.contains(separates)) {
        return Err(format!(
            "{key} cannot be {value:?}: in CNI_ARGS '=' and ';' separate arguments"
        ));
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

/// The values of a pod.
///
/// # Errors
/// An annotation isn't what it should be; a sentence.
pub(super) fn values(
    request: &NetworkRequest,
    pod_cidrs: &[Cidr],
) -> Result<Map<String, Value>, String> {
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

fn bandwidth(annotations: &BTreeMap<String, String>) -> Result<Option<Value>, String> {
    let mut value = Map::new();
    for direction in ["ingress", "egress"] {
        let name = format!("kubernetes.io/{direction}-bandwidth");
        let Some(text) = annotations.get(&name) else {
            continue;
        };
        // Kubernetes' limits, in bits per second.
        let rate = bits(text)
            .filter(|rate| (1_000..=1_000_000_000_000_000).contains(rate))
            .ok_or_else(|| {
                format!("the annotation {name} is {text:?}, not an amount from 1k to 1P")
            })?;
        value.insert(format!("{direction}Rate"), rate.into());
        value.insert(format!("{direction}Burst"), i32::MAX.into());
    }
    Ok((!value.is_empty()).then_some(Value::Object(value)))
}

/// A whole amount as Kubernetes writes them.
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
mod tests {
    use super::*;
    use crate::{Dns, PortMapping, Protocol};

    fn request() -> NetworkRequest {
        NetworkRequest {
            sandbox: "s1".to_owned(),
            pod_name: "web".to_owned(),
            pod_namespace: "default".to_owned(),
            pod_uid: "u1".to_owned(),
            ..NetworkRequest::default()
        }
    }

    #[test]
    fn arguments_name_the_pod() {
        assert_eq!(
            joined(&args(&request()).unwrap()),
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=s1;K8S_POD_UID=u1"
        );
    }

    #[test]
    fn a_name_adds_no_arguments() {
        for name in ["a;IP=10.0.0.1", "a=b", "a\0b", "a\nb"] {
            let mut request = request();
            request.pod_name = name.to_owned();
            assert!(args(&request).unwrap_err().contains("K8S_POD_NAME"));
        }
    }

    #[test]
    fn values_have_the_form_of_the_conventions() {
        let mut request = request();
        assert_eq!(values(&request, &[]).unwrap(), Map::new());
        request.port_mappings = vec![PortMapping {
            protocol: Protocol::Udp,
            container_port: 53,
            host_port: 5353,
            host_ip: "127.0.0.1".parse().ok(),
        }];
        request.dns = Dns {
            servers: vec!["192.0.2.53".to_owned()],
            ..Dns::default()
        };
        request.cgroup_parent = "/kubepods/pod1".to_owned();
        request.annotations.insert(
            "kubernetes.io/ingress-bandwidth".to_owned(),
            "10M".to_owned(),
        );
        let cidrs = ["10.1.0.0/24".parse().unwrap(), "fd00::/64".parse().unwrap()];
        let found = Value::Object(values(&request, &cidrs).unwrap());
        assert_eq!(
            found,
            json!({
                "portMappings": [{"hostPort": 5353, "containerPort": 53, "protocol": "udp", "hostIP": "127.0.0.1"}],
                "bandwidth": {"ingressRate": 10_000_000, "ingressBurst": i32::MAX},
                "ipRanges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00::/64"}]],
                "dns": {"servers": ["192.0.2.53"], "searches": [], "options": []},
                "cgroupPath": "/kubepods/pod1",
                "io.kubernetes.cri.pod-annotations": {"kubernetes.io/ingress-bandwidth": "10M"},
            })
        );
    }

    #[test]
    fn amounts_that_make_no_sense_are_refused() {
        for (text, wanted) in [
            ("1k", Some(1000)),
            ("2Mi", Some(2 << 20)),
            ("64000", Some(64000)),
        ] {
            assert_eq!(bits(text), wanted);
        }
        for text in ["", "fast", "1x", "1.5M", "-1M", "99999999999999999999"] {
            assert_eq!(bits(text), None, "{text}");
        }
        let mut request = request();
        request
            .annotations
            .insert("kubernetes.io/egress-bandwidth".to_owned(), "1".to_owned());
        let why = values(&request, &[]).unwrap_err();
        assert!(why.contains("kubernetes.io/egress-bandwidth"), "{why}");
    }
}
