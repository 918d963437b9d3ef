//! The environment of a container.

use serde_json::Value;

use super::{
    json::{list, map, string},
    text::Text,
};

/// Describes `env` and `envFrom`.
pub(super) fn describe(text: &mut Text, pod: &Value, container: &Value) {
    let sources = list(container, "/envFrom");
    if !sources.is_empty() {
        text.line(2, "Environment Variables from:");
        for source in sources {
            text.line(3, environment_source(source));
        }
    }
    let variables = list(container, "/env");
    if variables.is_empty() {
        text.line(2, "Environment:\t<none>");
        return;
    }
    text.line(2, "Environment:");
    for variable in variables {
        let name = string(variable, "/name");
        let from = &variable["valueFrom"];
        if from.is_object() {
            text.field(3, name, value_from(pod, from));
        } else {
            text.field(3, name, string(variable, "/value"));
        }
    }
}

fn environment_source(source: &Value) -> String {
    let (kind, of) = match source["secretRef"].is_object() {
        true => ("Secret", &source["secretRef"]),
        false => ("ConfigMap", &source["configMapRef"]),
    };
    format!(
        "{}\t{kind}\tOptional: {}",
        string(of, "/name"),
        of["optional"] == true
    )
}

fn value_from(pod: &Value, from: &Value) -> String {
    if let Some(path) = from["fieldRef"]["fieldPath"].as_str() {
        let version = from["fieldRef"]["apiVersion"].as_str().unwrap_or("v1");
        return format!("{} ({version}:{path})", field(pod, path));
    }
    if let Some(resource) = from["resourceFieldRef"]["resource"].as_str() {
        let reference = &from["resourceFieldRef"];
        let divisor = match string(reference, "/divisor") {
            "" | "0" | "1" => String::new(),
            divisor => format!(", divisor {divisor}"),
        };
        let of = match string(reference, "/containerName") {
            "" => String::new(),
            container => format!(" of container {container}"),
        };
        return format!("<set from {resource}{of}{divisor}>");
    }
    for (reference, what) in [
        ("secretKeyRef", "secret"),
        ("configMapKeyRef", "config map"),
    ] {
        let reference = &from[reference];
        if reference.is_object() {
            let (key, name) = (string(reference, "/key"), string(reference, "/name"));
            let optional = reference["optional"] == true;
            return format!("<set to the key '{key}' in {what} '{name}'>  Optional: {optional}");
        }
    }
    "<unknown>".to_owned()
}

/// The value of a field of the pod, as far as it is known yet.
fn field(pod: &Value, path: &str) -> String {
    for (prefix, entries) in [
        ("metadata.labels", "labels"),
        ("metadata.annotations", "annotations"),
    ] {
        let Some(rest) = path.strip_prefix(prefix) else {
            continue;
        };
        if rest.is_empty() {
            let pairs = map(&pod["metadata"][entries]).into_iter();
            let lines: Vec<String> = pairs
                .map(|(key, value)| format!("{key}={value:?}"))
                .collect();
            return lines.join("\n");
        }
        let key = rest
            .strip_prefix("['")
            .and_then(|rest| rest.strip_suffix("']"));
        return key
            .map_or("", |key| {
                pod["metadata"][entries][key].as_str().unwrap_or("")
            })
            .to_owned();
    }
    let addresses = |field: &str| {
        let entries = list(pod, field).iter().map(|entry| string(entry, "/ip"));
        entries.collect::<Vec<_>>().join(",")
    };
    match path {
        "status.podIPs" => addresses("/status/podIPs"),
        "status.hostIPs" => addresses("/status/hostIPs"),
        simple => string(pod, &format!("/{}", simple.replace('.', "/"))).to_owned(),
    }
}
