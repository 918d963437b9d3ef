//! Conditions that are not set by the agent, such as those of readiness gates.

use jiff::Timestamp;
use rubelet_http_core::field_error::FieldError;
use serde_json::Value;

use super::entries;
use crate::ActionError;

/// Types of conditions that the agent itself computes.
const AGENT_CONDITIONS: [&str; 8] = [
    "PodScheduled",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodReadyToStartContainers",
    "AllContainersRestarting",
    "PodResizePending",
    "PodResizeInProgress",
];

/// Fields of a condition that are kept.
const FIELDS: [&str; 7] = [
    "type",
    "status",
    "reason",
    "message",
    "lastTransitionTime",
    "lastProbeTime",
    "observedGeneration",
];

/// True for the type of a condition that only the agent sets.
#[must_use]
pub fn is_agent_condition(kind: &str) -> bool {
    AGENT_CONDITIONS.contains(&kind)
}

/// The changes to conditions that are not the agent's own. Conditions that are not named stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConditionChanges {
    /// Conditions that are new or changed.
    pub set: Vec<PodCondition>,
    /// Types of conditions that are gone.
    pub removed: Vec<String>,
}

/// A condition that a client sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodCondition {
    /// `type`.
    pub kind: String,
    /// `status`: True, False or Unknown.
    pub status: String,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `lastTransitionTime`, where the client says when `status` changed; otherwise it is the time
    /// of the change, or stays if `status` does.
    pub last_transition: Option<Timestamp>,
}

/// The changes to the conditions of a pod.
pub(super) fn changes(old: &Value, new: &Value) -> Result<ConditionChanges, ActionError> {
    const LIST: &str = "status.conditions";
    let (before, after) = (list(old), list(new));
    if let Some(other) = new.pointer("/status/conditions")
        && !other.is_array()
        && !other.is_null()
    {
        let error = FieldError::invalid(LIST, other, "must be a list");
        return Err(error.into());
    }
    let mut errors = Vec::new();
    let mut changes = ConditionChanges::default();
    let mut seen = Vec::new();
    for (index, condition) in after.iter().enumerate() {
        let path = format!("{LIST}[{index}]");
        let kind = text(condition, "type");
        let known = before.iter().find(|known| text(known, "type") == kind);
        if kind.is_empty() {
            errors.push(FieldError::required(format!("{path}.type")));
        } else if seen.contains(&kind) {
            errors.push(FieldError {
                field: format!("{path}.type"),
                reason: "FieldValueDuplicate",
                message: format!("Duplicate value: {kind:?}"),
            });
        } else if is_agent_condition(kind) {
            let same =
                |field| known.is_some_and(|known| text(known, field) == text(condition, field));
            if !["status", "reason", "message"].into_iter().all(same) {
                let rule = format!("the agent itself works out the condition {kind}");
                errors.push(FieldError::forbidden(path, &rule));
            }
        } else {
            match read(&path, condition, known) {
                Ok(Some(condition)) => changes.set.push(condition),
                Ok(None) => {}
                Err(mut found) => errors.append(&mut found),
            }
        }
        seen.push(kind);
    }
    if !errors.is_empty() {
        return Err(ActionError::Invalid(errors));
    }
    let gone = before.iter().map(|condition| text(condition, "type"));
    changes.removed = gone
        .filter(|kind| !seen.contains(kind) && !is_agent_condition(kind))
        .map(str::to_owned)
        .collect();
    Ok(changes)
}

/// Reads one condition; `None` if it is as before.
fn read(
    path: &str,
    condition: &Value,
    known: Option<&Value>,
) -> Result<Option<PodCondition>, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut refuse = |field: &str, value: &Value, rule: &str| {
        errors.push(FieldError::invalid(format!("{path}.{field}"), value, rule));
    };
    for (field, value) in condition.as_object().into_iter().flatten() {
        let is_text = !matches!(field.as_str(), "observedGeneration");
        if !FIELDS.contains(&field.as_str()) {
            refuse(field, value, "a condition has no such field");
        } else if is_text && !value.is_string() && !value.is_null() {
            refuse(field, value, "must be a text");
        }
    }
    let (kind, status) = (text(condition, "type"), text(condition, "status"));
    if !is_qualified_name(kind) {
        refuse("type", &condition["type"], QUALIFIED);
    }
    if !["True", "False", "Unknown"].contains(&status) {
        refuse(
            "status",
            &condition["status"],
            "must be True, False or Unknown",
        );
    }
    let before = |field: &str| known.map_or(&Value::Null, |known| &known[field]);
    let probed = &condition["lastProbeTime"];
    if !probed.is_null() && probed != before("lastProbeTime") {
        refuse("lastProbeTime", probed, "is not kept; leave it out");
    }
    let generation = &condition["observedGeneration"];
    if !generation.is_null() && generation != before("observedGeneration") {
        refuse(
            "observedGeneration",
            generation,
            "is not kept; leave it out",
        );
    }
    let moved = &condition["lastTransitionTime"];
    let mut last_transition = None;
    if !moved.is_null() && moved != before("lastTransitionTime") {
        match text(condition, "lastTransitionTime").parse() {
            Ok(time) => last_transition = Some(time),
            Err(_) => refuse("lastTransitionTime", moved, "must be a time in RFC 3339"),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let same = |field| known.is_some_and(|known| text(known, field) == text(condition, field));
    if ["status", "reason", "message"].into_iter().all(same) {
        return Ok(None);
    }
    Ok(Some(PodCondition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: text(condition, "reason").to_owned(),
        message: text(condition, "message").to_owned(),
        last_transition,
    }))
}

fn list(pod: &Value) -> &[Value] {
    entries(pod, "/status/conditions")
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition[field].as_str().unwrap_or_default()
}

const QUALIFIED: &str = "use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at \
                         both ends, after an optional domain and '/'";

/// The form of a condition's type (apimachinery's `IsQualifiedName`).
fn is_qualified_name(name: &str) -> bool {
    let ends_well = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let is_name = |text: &str| {
        text.len() <= 63
            && ends_well(text)
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let is_label = |text: &str| {
        text.len() <= 63
            && ends_well(text)
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    match name.split_once('/') {
        Some((domain, name)) => {
            domain.len() <= 253 && domain.split('.').all(is_label) && is_name(name)
        }
        None => is_name(name),
    }
}
