//! Events, in the core form in which they are stored. Source of checks and texts: upstream's
//! `validation/events.go`: events of the newer group are validated more strictly, and are nearly immutable.

use serde_json::{Value, json};

use crate::{Kind, StatusError, meta, status_error::FieldError};

/// Whether the request was made in the newer group.
fn is_strict(kind: &Kind) -> bool {
    kind.group == "events.k8s.io"
}

pub(super) fn before_create(kind: &Kind, event: &Value) -> Result<(), StatusError> {
    let mut causes = both(kind, event);
    if is_strict(kind) {
        causes.extend(series(event));
        if meta::text(event, "/eventTime").is_empty() {
            causes.push(FieldError::required("eventTime", ""));
        }
        let found = meta::text(event, "/type");
        if !["Normal", "Warning"].contains(&found) {
            let why = format!("has invalid value: {found}");
            causes.push(FieldError::invalid("type", &json!(""), &why));
        }
        for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
            let is_set = match event.get(field) {
                None | Some(Value::Null) => false,
                Some(Value::Object(fields)) => !fields.is_empty(),
                Some(value) => *value != 0,
            };
            if is_set {
                causes.push(FieldError::invalid(field, &json!(""), "needs to be unset"));
            }
        }
    }
    refuse(kind, event, causes)
}

pub(super) fn before_update(kind: &Kind, old: &Value, new: &Value) -> Result<(), StatusError> {
    let mut causes = both(kind, new);
    if is_strict(kind) {
        if new["series"] != old["series"] {
            causes.extend(series(new));
        }
        for (place, field) in [
            ("involvedObject", "involvedObject"),
            ("reason", "reason"),
            ("message", "message"),
            ("source", "source"),
            ("firstTimestamp", "firstTimestamp"),
            ("lastTimestamp", "lastTimestamp"),
            ("count", "count"),
            ("type", "type"),
            ("eventTime", "eventTime"),
            ("action", "action"),
            ("related", "related"),
            ("reportingComponent", "reportingController"),
            ("reportingInstance", "reportingInstance"),
        ] {
            if new[place] != old[place] {
                causes.push(FieldError::invalid(
                    field,
                    &new[place],
                    "field is immutable",
                ));
            }
        }
    }
    refuse(kind, new, causes)
}

fn refuse(kind: &Kind, event: &Value, causes: Vec<FieldError>) -> Result<(), StatusError> {
    match causes.is_empty() {
        true => Ok(()),
        false => Err(StatusError::invalid(kind, meta::name(event), causes)),
    }
}

fn series(event: &Value) -> Vec<FieldError> {
    let mut causes = Vec::new();
    if event.get("series").is_none_or(Value::is_null) {
        return causes;
    }
    if meta::number(event, "/series/count").unwrap_or(0) < 2 {
        let why = "should be at least 2";
        causes.push(FieldError::invalid("series.count", &json!(""), why));
    }
    if meta::text(event, "/series/lastObservedTime").is_empty() {
        causes.push(FieldError::required("series.lastObservedTime", ""));
    }
    causes
}

/// Rules of both groups. An event with `eventTime` has the newer form, whatever group it was sent
/// to.
fn both(kind: &Kind, event: &Value) -> Vec<FieldError> {
    let mut causes = Vec::new();
    let own = meta::namespace(event);
    let about = meta::text(event, "/involvedObject/namespace");
    let is_newer = !meta::text(event, "/eventTime").is_empty();
    let fits = match about {
        "" if is_newer => ["default", "kube-system"].contains(&own),
        "" => ["", "default"].contains(&own),
        about => is_newer || about == own,
    };
    if !fits {
        let why = "does not match event.namespace";
        let field = "involvedObject.namespace";
        causes.push(FieldError::invalid(field, &about.into(), why));
    }
    if !is_newer {
        return causes;
    }
    let reporter = match is_strict(kind) {
        true => "reportingController",
        false => "reportingComponent",
    };
    for (place, field, required, longest) in [
        ("/reportingComponent", reporter, true, usize::MAX),
        ("/reportingInstance", "reportingInstance", true, 128),
        ("/action", "action", true, 128),
        ("/reason", "reason", true, 128),
        ("/message", "message", false, 1024),
    ] {
        let text = meta::text(event, place);
        if required && text.is_empty() {
            causes.push(FieldError::required(field, ""));
        }
        if text.len() > longest {
            let why = format!("can have at most {longest} characters");
            causes.push(FieldError::invalid(field, &json!(""), &why));
        }
    }
    causes
}
