//! The audit log of a real API server: the rejected requests of a node.

use std::collections::BTreeSet;

use serde_json::Value;

/// Status codes of requests that should not have been sent: malformed, forbidden, or invalid. A
/// missing or changed object, or a temporary failure, is not the client's fault.
const REFUSED: [u64; 7] = [400, 401, 403, 405, 406, 415, 422];

/// Messages of a server whose caches lag: its authorizer's about an object that no known pod of the
/// node references, and NodeRestriction's about a pod that was just bound.
const LAGGING: [&str; 2] = [
    "no relationship found between node",
    "node requested token bound to a pod scheduled on a different node",
];

/// The rejected requests of nodes among these events, a line for each. A server whose caches lag
/// does not know yet which pods are on which node: a rejection for that reason only counts if the
/// server never granted that node access to the object.
pub(super) fn refused(log: &str) -> Vec<String> {
    let events: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|event| text(event, "/user/username").starts_with("system:node:"))
        .collect();
    let allowed: BTreeSet<_> = events
        .iter()
        .filter(|event| code(event) < 400)
        .map(object)
        .collect();
    events
        .iter()
        .filter(|event| REFUSED.contains(&code(event)))
        .filter(|event| !(may_lag(event) && allowed.contains(&object(event))))
        .map(line)
        .collect()
}

fn text<'a>(event: &'a Value, at: &str) -> &'a str {
    event.pointer(at).and_then(Value::as_str).unwrap_or("-")
}

/// The status code; 0 if none was given.
fn code(event: &Value) -> u64 {
    let code = event.pointer("/responseStatus/code");
    code.and_then(Value::as_u64).unwrap_or_default()
}

fn may_lag(event: &Value) -> bool {
    let message = text(event, "/responseStatus/message");
    LAGGING.iter().any(|known| message.contains(known))
}

/// Who requested which object.
fn object(event: &Value) -> [&str; 4] {
    [
        "/user/username",
        "/objectRef/resource",
        "/objectRef/namespace",
        "/objectRef/name",
    ]
    .map(|at| text(event, at))
}

fn line(event: &Value) -> String {
    format!(
        "{} {}: {} {} gave {}: {}",
        text(event, "/stageTimestamp"),
        text(event, "/user/username"),
        text(event, "/verb"),
        text(event, "/requestURI"),
        code(event),
        text(event, "/responseStatus/message"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(user: &str, code: u64) -> String {
        serde_json::json!({
            "user": { "username": user },
            "verb": "get",
            "requestURI": "/api/v1/pods",
            "responseStatus": { "code": code, "message": "why" },
        })
        .to_string()
    }

    #[test]
    fn only_rejected_requests_of_nodes_are_reported() {
        let log = [
            event("system:node:a", 200),
            event("system:node:a", 404),
            event("system:node:a", 409),
            event("admin", 403),
            event("system:node:a", 403),
            r#"{"user":{"us"#.to_owned(),
        ];
        let refused = refused(&log.join("\n"));
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(
            refused[0].ends_with("system:node:a: get /api/v1/pods gave 403: why"),
            "{refused:?}"
        );
    }

    #[test]
    fn a_rejection_by_lagging_caches_is_not_a_violation() {
        let of = |name: &str, code: u64, message: &str| {
            serde_json::json!({
                "user": { "username": "system:node:a" },
                "verb": "get",
                "objectRef": { "resource": "secrets", "namespace": "x", "name": name },
                "responseStatus": {
                    "code": code,
                    "message": message,
                },
            })
            .to_string()
        };
        for (message, count) in [
            ("no relationship found between node 'a' and this object", 1),
            (
                "node requested token bound to a pod scheduled on a different node",
                1,
            ),
            ("nodes may not", 2),
        ] {
            let log = [
                of("own", 403, message),
                of("theirs", 403, message),
                of("own", 200, ""),
            ];
            let refused = refused(&log.join("\n"));
            assert_eq!(refused.len(), count, "{refused:?}");
        }
    }
}
