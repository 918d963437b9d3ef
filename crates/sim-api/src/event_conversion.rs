//! Conversion of events between the core group, in which they are stored, and `events.k8s.io`.

use std::borrow::Cow;

use serde_json::Value;

use crate::Kind;

const NEWER: &str = "events.k8s.io";

/// Fields in the core group, and their names in the newer one.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// `apiVersion` in which objects of a kind are stored.
pub(crate) fn storage_api_version(kind: &Kind) -> String {
    if kind.group == NEWER {
        "v1".to_owned()
    } else {
        kind.api_version()
    }
}

/// Converts an object to its stored form.
pub(crate) fn to_storage(kind: &Kind, mut object: Value) -> Value {
    if kind.group == NEWER {
        rename(&mut object, |(core, newer)| (newer, core));
        object["apiVersion"] = "v1".into();
    }
    object
}

/// Converts a stored object to the kind.
pub(crate) fn from_storage(kind: &Kind, object: &Value) -> Value {
    from_storage_cow(kind, object).into_owned()
}

/// The same, without a copy if the forms are the same.
pub(crate) fn from_storage_cow<'a>(kind: &Kind, object: &'a Value) -> Cow<'a, Value> {
    if kind.group != NEWER {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    rename(&mut object, |names| names);
    object["apiVersion"] = kind.api_version().into();
    Cow::Owned(object)
}

fn rename(
    object: &mut Value,
    order: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    for names in NAMES {
        let (from, to) = order(names);
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_written_in_one_group_is_read_in_the_other() {
        let newer = Kind::of("events.events.k8s.io").unwrap();
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "reason": "Pulled",
            "regarding": { "name": "web" }, "note": "done", "reportingController": "kubelet",
        });
        let core = to_storage(newer, event.clone());
        assert_eq!(core["message"], "done");
        assert_eq!(core["involvedObject"]["name"], "web");
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(from_storage(newer, &core), event);
        assert_eq!(from_storage(Kind::of("events").unwrap(), &core), core);
    }
}
