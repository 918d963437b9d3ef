//! Nulls in requests of a node. Pure.
//!
//! Go programs write null for empty values. The API server stores it, and clients that expect a list or a
//! map fail on it. The agent writes none, and this server refuses requests of the agent that contain one.

use serde_json::Value;

/// Prefix of the agent's user agent. kubectl and kubelets may write null.
const STRICT: &str = "rubelet/";

/// Media types in which null deletes a field. The agent uses that only in the patch of a pod's status
/// (`cluster/src/status/patch.rs`).
const MERGE: [&str; 2] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// The field of a body that is null and must not be, such as `status.images[0].names`.
pub(crate) fn written_null(agent: &str, media_type: &str, body: &[u8]) -> Option<String> {
    if !agent.starts_with(STRICT) || !media_type.ends_with("json") {
        return None;
    }
    // Invalid JSON is refused elsewhere.
    let body = serde_json::from_slice(body).ok()?;
    below(&body, MERGE.contains(&media_type), "")
}

fn below(value: &Value, deletes: bool, at: &str) -> Option<String> {
    match value {
        Value::Null => Some(at.to_owned()),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| below(item, deletes, &format!("{at}[{index}]"))),
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !(deletes && value.is_null()))
            .find_map(|(name, value)| {
                let dot = if at.is_empty() { "" } else { "." };
                below(value, deletes, &format!("{at}{dot}{name}"))
            }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::written_null;

    #[test]
    fn null_is_found_unless_it_deletes_a_field() {
        let (object, merge) = ("application/json", "application/merge-patch+json");
        let json_patch = "application/json-patch+json";
        for (agent, media_type, body, found) in [
            (
                "rubelet/1.0",
                object,
                r#"{"a":{"b":[{"c":null}]}}"#,
                Some("a.b[0].c"),
            ),
            ("rubelet/1.0", object, r#"{"a":{"b":[1,"",{}]}}"#, None),
            ("rubelet/1.0", object, "null", Some("")),
            ("rubelet/1.0", object, "{", None),
            (
                "rubelet/1.0",
                merge,
                r#"{"a":{"b":null},"c":[{"d":null}]}"#,
                None,
            ),
            ("rubelet/1.0", merge, r#"{"a":[null]}"#, Some("a[0]")),
            (
                "rubelet/1.0",
                json_patch,
                r#"[{"op":"add","value":null}]"#,
                Some("[0].value"),
            ),
            ("kubectl/v1.36", object, r#"{"a":null}"#, None),
        ] {
            let read = written_null(agent, media_type, body.as_bytes());
            assert_eq!(read.as_deref(), found, "{agent} {media_type} {body}");
        }
    }
}
