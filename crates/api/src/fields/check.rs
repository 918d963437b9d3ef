//! Holds a manifest against the table.

use serde_json::Value;

use super::{Support, row};
use crate::{
    parse::{Errors, Path},
    pod::PodSource,
};

/// A field that a manifest sets although it has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// The field, such as `spec.schedulerName`.
    pub field: String,
    /// Why it has no effect.
    pub why: &'static str,
}

/// Notes an error for each field of `pod` that is set although its row refuses it. Fields in no row
/// are left to the decoder, which knows the schema.
pub(crate) fn check(pod: &Value, source: PodSource, errors: &mut Errors) {
    refuse(pod, source, String::new(), &Path::root(), errors);
}

/// As [`check`], for one container at `path`.
pub(crate) fn check_container(
    container: &Value,
    source: PodSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let general = "spec.containers[]".to_owned();
    refuse(container, source, general, path, errors);
}

fn refuse(
    value: &Value,
    source: PodSource,
    mut general: String,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let api = source == PodSource::Api;
    let report = &mut |support: Support, path: &Path<'_>, value: &Value| match support {
        _ if !support.is_refused() || !is_set(value) => {}
        Support::ApiObject(_) | Support::ApiOnly(_) if api => {}
        Support::NotYet(why) => errors.not_yet(path, why),
        Support::ApiObjectNotYet(what) if api => {
            errors.not_yet(path, format_args!("{what} come with a later release"));
        }
        Support::ApiObject(what) | Support::ApiObjectNotYet(what) => errors.forbidden(
            path,
            format_args!("static pods cannot use objects of the API server ({what})"),
        ),
        Support::Never(why) | Support::ApiOnly(why) => errors.forbidden(path, why),
        Support::Full | Support::Partial(_) | Support::NoEffect(_) | Support::ApiEffect(_) => {}
    };
    walk(value, api, &mut general, path, report);
}

/// The fields of a manifest's `pod` that are set and have no effect, for a remark beside the manifest.
#[must_use]
pub fn without_effect(pod: &Value) -> Vec<Idle> {
    let mut found = Vec::new();
    walk(
        pod,
        false,
        &mut String::new(),
        &Path::root(),
        &mut |support, path, value| {
            if let Support::NoEffect(why) | Support::ApiEffect(why) = support
                && is_set(value)
            {
                found.push(Idle {
                    field: path.to_string(),
                    why,
                });
            }
        },
    );
    found
}

/// An empty map is a setting where the field is a struct: `livenessProbe: {}` asks for a probe.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// Goes through the parts of `value` and reports those that have a row. `general` is the path as the
/// table writes it; the ephemeral containers of a pod of the API server have the rows of the others.
fn walk(
    value: &Value,
    api: bool,
    general: &mut String,
    path: &Path<'_>,
    report: &mut impl FnMut(Support, &Path<'_>, &Value),
) {
    if let Some(row) = row(general) {
        report(row.support, path, value);
        return;
    }
    let length = general.len();
    match value {
        Value::Object(fields) => {
            general.push_str("{}");
            let map = row(general);
            general.truncate(length);
            if let Some(map) = map {
                if !fields.is_empty() {
                    report(map.support, path, value);
                }
                return;
            }
            for (key, part) in fields {
                if !general.is_empty() {
                    general.push('.');
                }
                // Init containers have the rows of the others.
                let key_in_table = match (general.as_str(), key.as_str()) {
                    ("spec.", "initContainers") => "containers",
                    ("spec.", "ephemeralContainers") if api => "containers",
                    (_, key) => key,
                };
                general.push_str(key_in_table);
                walk(part, api, general, &path.child(key), report);
                general.truncate(length);
            }
        }
        Value::Array(items) => {
            general.push_str("[]");
            match row(general) {
                Some(list) => {
                    if !items.is_empty() {
                        report(list.support, path, value);
                    }
                }
                None => {
                    for (index, item) in items.iter().enumerate() {
                        walk(item, api, general, &path.index(index), report);
                    }
                }
            }
            general.truncate(length);
        }
        _ => {}
    }
}
