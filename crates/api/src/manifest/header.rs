//! `apiVersion` and `kind`: what a document claims to be.

use rubelet_yaml::DecodeError;
use serde_json::Value;

use super::Written;

const ALLOWED: &str = "a manifest holds a v1 Pod, a v1 PodList, or a v1 List of Pods";

/// What a document may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pod,
    PodList,
    List,
}

/// What the document is, or why that can't be.
pub(super) fn kind(document: &Written) -> Result<Kind, DecodeError> {
    let value = document.value();
    if !value.is_object() {
        let message = format!("expected a mapping with apiVersion and kind; {ALLOWED}");
        return Err(document.error_at("", message));
    }
    let kind = text(document, "kind", &format!("missing; {ALLOWED}"))?;
    let found = match kind {
        "Pod" => Kind::Pod,
        "PodList" => Kind::PodList,
        "List" => Kind::List,
        _ => return Err(document.error_at("kind", refusal(kind))),
    };
    match text(document, "apiVersion", "missing; write v1")? {
        "v1" => Ok(found),
        other => {
            let message = format!("{other:?} does not go with kind {kind}; write v1");
            Err(document.error_at("apiVersion", message))
        }
    }
}

/// Checks the header of a list's item. The items of a PodList need no header.
pub(super) fn check_item(item: &Written, list: Kind) -> Option<DecodeError> {
    let bare = ["apiVersion", "kind"]
        .iter()
        .all(|field| item.value().get(field).is_none_or(Value::is_null));
    if list == Kind::PodList && bare {
        return None;
    }
    match kind(item) {
        Ok(Kind::Pod) => None,
        Ok(Kind::PodList | Kind::List) => {
            Some(item.error_at("kind", "a list must not hold lists; write its pods here"))
        }
        Err(error) => Some(error),
    }
}

/// How many items a list has.
pub(super) fn items(list: &Written) -> Result<usize, Vec<DecodeError>> {
    let value = list.value();
    let unknown: Vec<DecodeError> = value
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys())
        .filter(|key| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "items"))
        .map(|key| list.error_at(key, "unknown field; a list has metadata and items"))
        .collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    match value.get("items") {
        None | Some(Value::Null) => Ok(0),
        Some(Value::Array(items)) => Ok(items.len()),
        Some(_) => Err(vec![list.error_at("items", "expected a list of pods")]),
    }
}

fn text<'a>(document: &'a Written, field: &str, missing: &str) -> Result<&'a str, DecodeError> {
    match document.value().get(field) {
        None | Some(Value::Null) => Err(document.error_at(field, missing)),
        Some(Value::String(text)) if text.is_empty() => Err(document.error_at(field, missing)),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(document.error_at(field, "expected a string")),
    }
}

fn refusal(kind: &str) -> String {
    let hint = match kind {
        "DaemonSet"
        | "Deployment"
        | "Job"
        | "ReplicaSet"
        | "ReplicationController"
        | "StatefulSet" => ": write the template in its spec as a Pod",
        "CronJob" => ": cron jobs need a cluster",
        "ConfigMap" | "Secret" => ": static pods cannot use objects of the API server",
        _ => "",
    };
    format!("{kind:?} is not allowed; {ALLOWED}{hint}")
}
