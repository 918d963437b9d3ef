//! Results of plugins.

use std::net::IpAddr;

use serde_json::Value;

use crate::NetworkResult;

use super::error::PluginError;

/// Maximum number of addresses in a result. Each is written to the pod's status.
const MAX_ADDRESSES: usize = 64;

/// Parses the result of ADD. A plugin may print nothing.
///
/// # Errors
/// It is not a CNI result.
pub(super) fn parse(kind: &str, version: &str, answer: &[u8]) -> Result<Value, PluginError> {
    let invalid = |reason: String| PluginError::InvalidResult {
        plugin: kind.to_owned(),
        reason,
    };
    if answer.iter().all(u8::is_ascii_whitespace) {
        return Ok(serde_json::json!({ "cniVersion": version }));
    }
    let mut value: Value = serde_json::from_slice(answer)
        .map_err(|error| invalid(format!("it is not valid JSON: {error}")))?;
    let count = value["ips"].as_array().map_or(0, Vec::len);
    if count > MAX_ADDRESSES {
        return Err(invalid(format!(
            "it has {count} addresses, and a pod can have {MAX_ADDRESSES}"
        )));
    }
    match &mut value {
        Value::Object(object) => {
            let said = object.get("cniVersion").and_then(Value::as_str);
            if said.is_none_or(str::is_empty) {
                object.insert("cniVersion".to_owned(), version.into());
            }
            Ok(value)
        }
        _ => Err(invalid("it is not a JSON object".to_owned())),
    }
}

/// The addresses and other data of a result for the runtime.
pub(super) fn summary(result: &Value, interface: &str) -> NetworkResult {
    let empty = Vec::new();
    let interfaces = result["interfaces"].as_array().unwrap_or(&empty);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let inside = |found: &Value| !text(&found["sandbox"]).is_empty();
    let is_pods = |ip: &Value| match ip["interface"].as_u64() {
        None => true,
        Some(number) => usize::try_from(number)
            .ok()
            .and_then(|number| interfaces.get(number))
            .is_some_and(|found| inside(found) && text(&found["name"]) == interface),
    };
    let all = result["ips"].as_array().unwrap_or(&empty);
    let mut ips: Vec<IpAddr> = all
        .iter()
        .filter(|ip| is_pods(ip))
        .filter_map(address)
        .collect();
    if ips.is_empty() {
        ips = all.iter().filter_map(address).collect();
    }
    // Before version 0.3.0 a result had one address of each family.
    for family in ["ip4", "ip6"] {
        let old = result[family]["ip"].as_str().and_then(without_prefix);
        ips.extend(old);
    }
    let own = interfaces
        .iter()
        .find(|found| inside(found) && text(&found["name"]) == interface);
    let host_end = interfaces
        .iter()
        .rfind(|found| !inside(found) && text(&found["name"]).starts_with("veth"));
    NetworkResult {
        ips,
        interface: interface.to_owned(),
        mac: own
            .map(|own| text(&own["mac"]))
            .filter(|mac| !mac.is_empty()),
        host_interface: host_end.map(|end| text(&end["name"])),
        warnings: Vec::new(),
    }
}

fn address(ip: &Value) -> Option<IpAddr> {
    without_prefix(ip["address"].as_str()?)
}

fn without_prefix(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests;
