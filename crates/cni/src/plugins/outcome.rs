//! What plugins answer.

use std::net::IpAddr;

use serde_json::Value;

use crate::NetworkResult;

/// How many addresses a plugin may tell of. Each of them ends up in the pod's status.
const MOST_ADDRESSES: usize = 64;

/// Reads an answer to ADD; an empty one is that of a plugin without anything to tell.
///
/// # Errors
/// It isn't a result; a sentence.
pub(super) fn parse(kind: &str, version: &str, answer: &[u8]) -> Result<Value, String> {
    if answer.iter().all(u8::is_ascii_whitespace) {
        return Ok(serde_json::json!({ "cniVersion": version }));
    }
    let mut value: Value = serde_json::from_slice(answer).map_err(|error| {
        format!("the CNI plugin {kind} gave an answer that is not JSON: {error}")
    })?;
    let count = value["ips"].as_array().map_or(0, Vec::len);
    if count > MOST_ADDRESSES {
        return Err(format!(
            "the CNI plugin {kind} gave {count} addresses; a pod can have {MOST_ADDRESSES}"
        ));
    }
    match &mut value {
        Value::Object(object) => {
            let said = object.get("cniVersion").and_then(Value::as_str);
            if said.is_none_or(str::is_empty) {
                object.insert("cniVersion".to_owned(), version.into());
            }
            Ok(value)
        }
        _ => Err(format!(
            "the CNI plugin {kind} gave an answer that is not a JSON object"
        )),
    }
}

/// What the runtime wants to know of a result.
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
    // Before version 0.3.0 there was one address of each family.
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
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_of_the_pods_own_interface_count() {
        let result = json!({
            "cniVersion": "1.0.0",
            "interfaces": [
                {"name": "cni0", "mac": "a"},
                {"name": "veth12", "mac": "b"},
                {"name": "eth0", "mac": "c", "sandbox": "/run/netns/x"},
                {"name": "net1", "mac": "d", "sandbox": "/run/netns/x"},
            ],
            "ips": [
                {"address": "10.9.0.7/16", "interface": 3},
                {"address": "10.1.0.7/16", "interface": 2},
                {"address": "fd00::7/64", "interface": 2},
            ],
        });
        let found = summary(&result, "eth0");
        assert_eq!(
            found.ips,
            [
                "10.1.0.7".parse::<IpAddr>().unwrap(),
                "fd00::7".parse().unwrap()
            ]
        );
        assert_eq!(found.mac.as_deref(), Some("c"));
        assert_eq!(found.host_interface.as_deref(), Some("veth12"));
    }

    #[test]
    fn results_of_old_plugins_are_understood() {
        let found = summary(
            &json!({"ips": [{"version": "4", "address": "10.1.0.7/16"}]}),
            "eth0",
        );
        assert_eq!(found.ips, ["10.1.0.7".parse::<IpAddr>().unwrap()]);
        let found = summary(
            &json!({"ip4": {"ip": "10.1.0.7/16"}, "ip6": {"ip": "fd00::7/64"}}),
            "eth0",
        );
        assert_eq!(found.ips.len(), 2);
        assert_eq!(summary(&json!({}), "eth0").ips, Vec::<IpAddr>::new());
    }

    #[test]
    fn answers_that_are_no_results_are_told() {
        assert_eq!(
            parse("a", "1.0.0", b" \n").unwrap(),
            json!({"cniVersion": "1.0.0"})
        );
        assert_eq!(
            parse("a", "1.0.0", b"{}").unwrap(),
            json!({"cniVersion": "1.0.0"})
        );
        assert_eq!(
            parse("a", "1.0.0", br#"{"cniVersion":"0.3.1"}"#).unwrap()["cniVersion"],
            "0.3.1"
        );
        let many = json!({ "ips": vec![json!({"address": "10.1.0.7/16"}); 65] }).to_string();
        let why = parse("a", "1.0.0", many.as_bytes()).unwrap_err();
        assert!(why.contains("65 addresses"), "{why}");
        let deep = "[".repeat(100_000);
        assert!(parse("a", "1.0.0", deep.as_bytes()).is_err());
        assert!(parse("a", "1.0.0", b"[]").unwrap_err().contains("plugin a"));
        assert!(
            parse("a", "1.0.0", b"hello")
                .unwrap_err()
                .contains("plugin a")
        );
    }
}
