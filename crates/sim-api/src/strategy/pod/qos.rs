//! The QoS class of a pod.

use serde_json::Value;

use crate::meta;

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(super) fn class(spec: &Value) -> &'static str {
    let lists = ["/initContainers", "/containers"];
    let containers = || lists.iter().flat_map(|list| meta::entries(spec, list));
    let quantity = |container: &Value, part: &str, name: &str| {
        let found = container.pointer(&format!("/resources/{part}/{name}"));
        let text = match found {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return None,
        };
        (!["", "0"].contains(&text.as_str())).then_some(text)
    };
    let names = ["cpu", "memory"];
    let parts = ["requests", "limits"];
    let asks = containers().any(|container| {
        let mut all = names
            .iter()
            .flat_map(|name| parts.iter().map(move |part| (part, name)));
        all.any(|(part, name)| quantity(container, part, name).is_some())
    });
    if !asks {
        return "BestEffort";
    }
    let is_guaranteed = containers().all(|container| {
        names.iter().all(|name| {
            let limit = quantity(container, "limits", name);
            limit.is_some() && limit == quantity(container, "requests", name)
        })
    });
    if is_guaranteed {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let full = json!({ "cpu": "1", "memory": "1Gi" });
        for (resources, expected) in [
            (json!({}), "BestEffort"),
            (json!({ "requests": { "cpu": "0" } }), "BestEffort"),
            (json!({ "requests": { "cpu": "1" } }), "Burstable"),
            (json!({ "requests": full, "limits": full }), "Guaranteed"),
            (
                json!({ "requests": full, "limits": { "cpu": "2", "memory": "1Gi" } }),
                "Burstable",
            ),
        ] {
            let spec = json!({ "containers": [{ "resources": resources }] });
            assert_eq!(class(&spec), expected, "{spec}");
        }
    }
}
