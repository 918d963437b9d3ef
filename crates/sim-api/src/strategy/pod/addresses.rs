//! Addresses in the status of a pod: the older field and the list, and their validation. Source: upstream's
//! conversion of `PodStatus`, `validatePodIPs` and `validateHostIPs`.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::{meta, status_error::FieldError};

/// Makes `podIP` and `podIPs` consistent; if they differ, the older field takes precedence.
pub(super) fn complete(status: &mut Value) {
    let own = meta::text(status, "/podIP").to_owned();
    let first = meta::text(status, "/podIPs/0/ip").to_owned();
    if !own.is_empty() && own != first {
        status["podIPs"] = json!([{ "ip": own }]);
    } else if own.is_empty() && !first.is_empty() {
        status["podIP"] = first.into();
    }
}

/// Validates the addresses; earlier ones are accepted.
pub(super) fn check(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut causes = Vec::new();
    let host = meta::text(new, "/status/hostIP");
    let first = meta::text(new, "/status/hostIPs/0/ip");
    if !first.is_empty() && host != first {
        let why = "must be equal to `hostIP`";
        causes.push(FieldError::invalid(
            "status.hostIPs[0].ip",
            &first.into(),
            why,
        ));
    }
    for list in ["podIPs", "hostIPs"] {
        let place = format!("/status/{list}");
        let before = meta::entries(old, &place);
        let entries = meta::entries(new, &place);
        for (index, entry) in entries.iter().enumerate() {
            let text = meta::text(entry, "/ip");
            let is_old = before.iter().any(|one| one["ip"] == entry["ip"]);
            if !is_old && text.parse::<IpAddr>().is_err() {
                let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                let field = format!("status.{list}[{index}]");
                causes.push(FieldError::invalid(field, &text.into(), why));
            }
        }
        let parsed = entries
            .iter()
            .filter_map(|entry| meta::text(entry, "/ip").parse().ok());
        let families: Vec<bool> = parsed.map(|address: IpAddr| address.is_ipv4()).collect();
        if families.len() > 2 || matches!(families.as_slice(), [first, second] if first == second) {
            let why = "may specify no more than one IP for each IP family";
            let value = Value::from(entries);
            causes.push(FieldError::invalid(format!("status.{list}"), &value, why));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_ip_and_pod_ips_are_made_consistent() {
        for (status, wanted) in [
            (
                json!({ "podIP": "10.0.0.1" }),
                json!({ "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.1" }] }),
            ),
            (
                json!({ "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }] }),
                json!({ "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }] }),
            ),
            (
                json!({ "podIP": "10.0.0.2", "podIPs": [{ "ip": "10.0.0.1" }] }),
                json!({ "podIP": "10.0.0.2", "podIPs": [{ "ip": "10.0.0.2" }] }),
            ),
            (json!({}), json!({})),
        ] {
            let mut found = status.clone();
            complete(&mut found);
            assert_eq!(found, wanted, "{status}");
        }
    }

    #[test]
    fn a_list_has_one_address_of_each_family() {
        let pod = |status: Value| json!({ "status": status });
        let none = pod(json!({}));
        for (status, field) in [
            (
                json!({ "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }] }),
                None,
            ),
            (
                json!({ "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }] }),
                Some("status.podIPs"),
            ),
            (
                json!({ "podIPs": [{ "ip": "ten" }] }),
                Some("status.podIPs[0]"),
            ),
            (
                json!({ "hostIP": "10.0.0.1", "hostIPs": [{ "ip": "10.0.0.1" }] }),
                None,
            ),
            (
                json!({ "hostIPs": [{ "ip": "10.0.0.1" }] }),
                Some("status.hostIPs[0].ip"),
            ),
        ] {
            let causes = check(&none, &pod(status.clone()));
            let found = causes.first().map(|cause| cause.field.as_str());
            assert_eq!(found, field, "{status}");
        }
        let old = pod(json!({ "podIPs": [{ "ip": "ten" }] }));
        assert!(check(&old, &old).is_empty());
    }
}
